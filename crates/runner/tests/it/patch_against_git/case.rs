//! A random case: a tree, and a diff that may or may not fit it.

use std::fmt;

use super::content;
use super::diff_text::{Section, Style};
use super::mutation;
use super::oracle::Git;
use super::world::{File, World};
use belljar_testkit::random::Random;

#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) before: World,
    pub(super) diff: Vec<u8>,
}

pub(super) const NAMES: [&str; 22] = [
    "x",
    "y",
    "z",
    "d/x",
    "d/y",
    "d/e/z",
    "d/e",
    "e/f/g",
    "x.orig",
    "x~",
    "sp ace",
    "d/sp ace/x",
    " lead",
    "ä",
    "d/日本",
    "q\"uote",
    "back\\slash",
    "a",
    "b",
    "a/b",
    "b/x",
    "x y x y",
];
const GIT_FLAGS: [&[&str]; 12] = [
    &[],
    &["-U0"],
    &["-U1"],
    &["-U5"],
    &["-M", "-U2"],
    &["-C", "-C", "--find-copies-harder"],
    &["-M", "--binary"],
    &["-M", "-D"],
    &["-W"],
    &["--full-index", "-M"],
    &["--src-prefix=", "--dst-prefix="],
    &["--patience", "-B", "-M"],
];

impl Case {
    pub(super) fn random(seed: u64, git: &Git) -> Self {
        let random = &mut Random::new(seed);
        if random.chance(35) {
            return Self::of_many_hunks(random);
        }
        let start = random_world(random);
        let mut diff = Vec::new();
        if random.chance(4) {
            let (after, _) = evolve(random, &start);
            diff = git.diff(&start, &after, GIT_FLAGS[random.below(GIT_FLAGS.len())]);
        } else {
            let style = Style::random(random);
            let (after, mut sections) = evolve(random, &start);
            if random.chance(25) {
                let (_, more) = evolve(random, &after);
                sections.extend(more);
            }
            if random.chance(10) && !sections.is_empty() {
                let (from, to) = (random.below(sections.len()), random.below(sections.len()));
                sections.swap(from, to);
            }
            diff.extend(style.write(&sections));
        }
        let mut before = start;
        if random.chance(30) {
            drift(random, &mut before);
        }
        if random.chance(35) {
            for _ in 0..1 + random.below(3) {
                diff = mutation::mutate(random, &diff);
            }
        }
        Self { before, diff }
    }

    /// Returns a file of repeating lines, with hunks in several places that may have to be searched for.
    fn of_many_hunks(random: &mut Random) -> Self {
        let old = content::long_text(random);
        let mut new = old.clone();
        for _ in 0..1 + random.below(3) {
            new = content::edited(random, &new);
        }
        let mut before = World::default();
        before.files.insert("x".to_owned(), File { executable: false, bytes: old.clone() });
        let section = |old: Vec<u8>, new: Vec<u8>| {
            let side = |bytes| Some(("x".to_owned(), File { executable: false, bytes }));
            Section { old: side(old), new: side(new), is_copy: false }
        };
        let mut diff = Style::git(random).write(&[section(old, new.clone())]);
        if random.chance(15) {
            let newer = content::edited(random, &new);
            diff.extend(Style::git(random).write(&[section(new, newer)]));
        }
        if random.chance(50) {
            drift(random, &mut before);
        }
        if random.chance(50) {
            for _ in 0..1 + random.below(3) {
                diff = mutation::mutate_hunks(random, &diff);
            }
        }
        Self { before, diff }
    }

    /// Returns the size that shrinking reduces.
    pub(super) fn size(&self) -> usize {
        let files = self.before.files.values().map(|file| 1 + file.bytes.len()).sum::<usize>();
        files + self.before.directories.len() + self.diff.len()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, file) in &self.before.files {
            let mark = if file.executable { "*" } else { "" };
            writeln!(out, "file {path:?}{mark}: \"{}\"", file.bytes.escape_ascii())?;
        }
        for directory in &self.before.directories {
            writeln!(out, "directory {directory:?}")?;
        }
        writeln!(out, "diff:")?;
        for line in content::split_lines(&self.diff) {
            writeln!(out, "    b\"{}\",", line.escape_ascii())?;
        }
        Ok(())
    }
}

fn random_world(random: &mut Random) -> World {
    let mut world = World::default();
    for _ in 0..1 + random.below(5) {
        let name = random.pick(&NAMES);
        if world.has_room_for(name) {
            let bytes = content::text(random);
            world.files.insert(name.to_owned(), File { executable: random.chance(20), bytes });
        }
    }
    if random.chance(10) {
        let name = random.pick(&NAMES);
        if world.has_room_for(name) {
            world.directories.insert(name.to_owned());
        }
    }
    world
}

/// Changes a world, and says how in sections that all start from `before`.
fn evolve(random: &mut Random, before: &World) -> (World, Vec<Section>) {
    let mut after = before.clone();
    let mut sections = Vec::new();
    for (name, file) in &before.files {
        let old = Some((name.clone(), file.clone()));
        let mut changed = file.clone();
        if random.chance(70) {
            changed.bytes = content::edited(random, &file.bytes);
        }
        if random.chance(10) {
            changed.executable = !changed.executable;
        }
        match random.below(10) {
            0..4 => {
                after.files.insert(name.clone(), changed.clone());
                sections.push(Section { old, new: Some((name.clone(), changed)), is_copy: false });
            }
            4 => {
                after.files.remove(name);
                sections.push(Section { old, new: None, is_copy: false });
            }
            verb @ 5..8 => {
                // A rename may go where another file goes away, so that chains and swaps come up.
                let is_copy = verb == 7;
                let target = random.pick(&NAMES).to_owned();
                if !is_copy {
                    after.files.remove(name);
                }
                if after.has_room_for(&target) {
                    after.files.insert(target.clone(), changed.clone());
                    sections.push(Section { old, new: Some((target, changed)), is_copy });
                } else if !is_copy {
                    after.files.insert(name.clone(), file.clone());
                }
            }
            _ => {}
        }
    }
    for _ in 0..random.below(3) {
        let name = random.pick(&NAMES).to_owned();
        if after.has_room_for(&name) {
            let file = File { executable: random.chance(20), bytes: content::text(random) };
            after.files.insert(name.clone(), file.clone());
            sections.push(Section { old: None, new: Some((name, file)), is_copy: false });
        }
    }
    if sections.len() > 1 && random.chance(30) {
        let at = random.below(sections.len());
        sections.rotate_left(at);
    }
    if let [one, other, ..] = &mut sections[..]
        && random.chance(5)
        && let (Some(first), Some(second)) = (&mut one.new, &mut other.new)
    {
        // Two renames (or whatever they are) that trade places.
        std::mem::swap(&mut first.0, &mut second.0);
    }
    (after, sections)
}

/// Changes the tree after the diff was made.
fn drift(random: &mut Random, world: &mut World) {
    for file in world.files.values_mut() {
        match random.below(10) {
            0..5 => file.bytes = content::edited(random, &file.bytes),
            5 => file.executable = !file.executable,
            6 => {
                let above = content::text(random);
                if above.is_empty() || above.ends_with(b"\n") {
                    file.bytes.splice(0..0, above);
                }
            }
            _ => {}
        }
    }
    let name = random.pick(&NAMES);
    match random.below(10) {
        0 => drop(world.files.remove(name)),
        1 if world.has_room_for(name) => drop(world.files.insert(name.to_owned(), File::default())),
        2 if world.has_room_for(name) => drop(world.directories.insert(name.to_owned())),
        _ => {}
    }
}
