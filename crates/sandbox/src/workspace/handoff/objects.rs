//! Verifies new objects of Git. Git believes the name of an object and doesn't look at whether what is in the file has that hash: with
//! other content, a known commit would be another one under its own name.

use belljar_files::directory::Directory;
use flate2::bufread::ZlibDecoder;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Maximum number of bytes that are decompressed for one review.
const MOST_BYTES: u64 = 256 << 20;

/// Maximum length of `TYPE SIZE` before the content.
const LONGEST_HEADER: usize = 32;

/// Maximum size of a commit or tree. Those that people make are far smaller.
const LARGEST_TREE_BYTES: usize = 16 << 20;

/// Verifies objects for one review.
#[derive(Debug)]
pub(super) struct ObjectCheck {
    bytes_left: u64,
    found: NewObjects,
}

/// The commits and trees among the objects that were verified, by their hashes.
#[derive(Debug, Default)]
pub(super) struct NewObjects {
    commits: BTreeMap<Vec<u8>, Vec<u8>>,
    trees: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The beginning of an object, and how long it is. Of a commit or tree, all of it.
struct ObjectHeader {
    bytes: Vec<u8>,
    length: u64,
}

// === impl ObjectCheck ===

impl ObjectCheck {
    pub(super) fn new() -> Self {
        Self { bytes_left: MOST_BYTES, found: NewObjects::default() }
    }

    /// Returns true if a file of the tree is an object whose name is the hash of what is in it. What is too large to be looked at isn't.
    pub(super) fn holds(&mut self, tree: &Directory, path: &Path) -> bool {
        let Some(name) = object_name(path) else { return false };
        let Ok(file) = tree.open_file(path) else { return false };
        let from = file.take(self.bytes_left);
        match name.len() {
            40 => self.has_hash::<Sha1>(from, &name),
            _ => self.has_hash::<Sha256>(from, &name),
        }
    }

    fn has_hash<D: Digest>(&mut self, from: impl Read, name: &str) -> bool {
        let (mut hash, mut header) = (D::new(), ObjectHeader { bytes: Vec::new(), length: 0 });
        let is_whole = inflate(from, self.bytes_left, |portion| {
            hash.update(portion);
            header.note(portion);
        });
        self.bytes_left = self.bytes_left.saturating_sub(header.length);
        let hash = hash.finalize();
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_it = is_whole && header.is_right() && hex == name;
        if is_it {
            self.found.note(&hash, &header.bytes);
        }
        is_it
    }

    /// The commits and trees among what was verified.
    pub(super) fn into_found(self) -> NewObjects {
        self.found
    }
}

// === impl NewObjects ===

impl NewObjects {
    fn note(&mut self, hash: &[u8], bytes: &[u8]) {
        let Some(end) = bytes.iter().position(|byte| *byte == 0) else { return };
        let objects = match bytes {
            [b'c', ..] => &mut self.commits,
            [b't', b'r', ..] => &mut self.trees,
            _ => return,
        };
        objects.insert(hash.to_vec(), bytes[end + 1..].to_vec());
    }

    /// The content of a new commit.
    pub(super) fn commit(&self, hash: &[u8]) -> Option<&[u8]> {
        self.commits.get(hash).map(Vec::as_slice)
    }

    /// The content of a new tree.
    pub(super) fn tree(&self, hash: &[u8]) -> Option<&[u8]> {
        self.trees.get(hash).map(Vec::as_slice)
    }
}

/// Decompresses a zlib stream, portion by portion. Returns true if it is complete, is all that there is, and holds no more than `most`
/// bytes.
fn inflate(from: impl Read, most: u64, mut each: impl FnMut(&[u8])) -> bool {
    let mut stream = ZlibDecoder::new(BufReader::new(from));
    let mut portion = [0; 16 << 10];
    let mut left = most;
    loop {
        match stream.read(&mut portion) {
            Ok(0) => return stream.get_mut().fill_buf().is_ok_and(<[u8]>::is_empty),
            Ok(count) if count as u64 <= left => {
                left -= count as u64;
                each(portion.get(..count).unwrap_or_default());
            }
            Ok(_) | Err(_) => return false,
        }
    }
}

// === impl ObjectHeader ===

impl ObjectHeader {
    fn note(&mut self, portion: &[u8]) {
        let most = if self.is_kept() { LARGEST_TREE_BYTES } else { LONGEST_HEADER };
        let missing = most.saturating_sub(self.bytes.len()).min(portion.len());
        self.bytes.extend_from_slice(&portion[..missing]);
        self.length += portion.len() as u64;
    }

    /// Returns true if all of it is looked at: it is a commit or a tree, or nothing is known of it yet.
    fn is_kept(&self) -> bool {
        matches!(self.bytes.as_slice(), [] | [b'c', ..] | [b't', b'r', ..])
    }

    fn is_right(&self) -> bool {
        let Some(end) = self.bytes.iter().position(|byte| *byte == 0) else { return false };
        let Ok(text) = str::from_utf8(&self.bytes[..end]) else { return false };
        let content = self.length - end as u64 - 1;
        if self.is_kept() && self.length != self.bytes.len() as u64 {
            return false;
        }
        ["blob", "tree", "commit", "tag"].iter().any(|kind| text == format!("{kind} {content}"))
    }
}

/// The object's name that a path ends with, exactly as Git writes it.
fn object_name(path: &Path) -> Option<String> {
    let mut parts = path.iter().rev();
    let (rest, two) = (parts.next()?.to_str()?, parts.next()?.to_str()?);
    let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let has_length = two.len() == 2 && matches!(rest.len(), 38 | 62);
    (has_length && is_hex(two) && is_hex(rest)).then(|| format!("{two}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Runs Git in a directory, without settings of the user; returns its output.
    fn git(place: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "core.looseCompression=9"]).args(arguments).current_dir(place);
        let environment = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null")];
        let ran = command.envs(environment).stdin(Stdio::null()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    }

    fn path_of(name: &str) -> String {
        format!(".git/objects/{}/{}", &name[..2], &name[2..])
    }

    #[test]
    fn objects_that_git_writes_have_their_hash_as_name_and_others_under_that_name_do_not() {
        for format in ["sha1", "sha256"] {
            let place = tempfile::tempdir().unwrap();
            git(place.path(), &["init", "--quiet", &format!("--object-format={format}"), "."]);
            // Stored as it is, with the fixed code, with a code of its own, and with copies from far back.
            let noise: Vec<u8> =
                (0..200_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
            let words: String =
                (0..40_000).map(|at| format!("{} word {}\n", at * at % 977, at % 13)).collect();
            let contents = [b"".to_vec(), b"a\n".to_vec(), noise, words.into_bytes(), vec![b'x'; 3 << 20]];
            let tree = Directory::open_host(place.path()).unwrap();
            let mut names = Vec::new();
            for (level, content) in
                ["0", "1", "9"].iter().flat_map(|level| contents.iter().map(move |c| (level, c)))
            {
                std::fs::write(place.path().join("file"), content).unwrap();
                let compression = format!("core.looseCompression={level}");
                let name = git(place.path(), &["-c", &compression, "hash-object", "-w", "file"]);
                assert!(
                    ObjectCheck::new().holds(&tree, path_of(&name).as_ref()),
                    "{level} {}",
                    content.len()
                );
                names.push(name);
                git(place.path(), &["-c", &compression, "prune"]);
            }
            // The controls: another object under that name, and one that is cut off, goes on, or is damaged.
            std::fs::write(place.path().join("file"), "evil\n").unwrap();
            let evil = git(place.path(), &["hash-object", "-w", "file"]);
            let evil = std::fs::read(place.path().join(path_of(&evil))).unwrap();
            std::fs::write(place.path().join("file"), "good\n").unwrap();
            let good = path_of(&git(place.path(), &["hash-object", "-w", "file"]));
            let bytes = std::fs::read(place.path().join(&good)).unwrap();
            let mut damaged = bytes.clone();
            damaged[bytes.len() / 2] ^= 1;
            for other in
                [evil, bytes[..bytes.len() - 1].to_vec(), [&bytes[..], b"x"].concat(), damaged, vec![]]
            {
                std::fs::remove_file(place.path().join(&good)).unwrap();
                std::fs::write(place.path().join(&good), other).unwrap();
                assert!(!ObjectCheck::new().holds(&tree, good.as_ref()));
            }
        }
    }

    #[test]
    fn what_is_too_large_or_has_another_kind_of_name_is_not_verified() {
        let place = tempfile::tempdir().unwrap();
        git(place.path(), &["init", "--quiet", "."]);
        std::fs::write(place.path().join("file"), vec![0; 1 << 20]).unwrap();
        let name = path_of(&git(place.path(), &["hash-object", "-w", "file"]));
        let tree = Directory::open_host(place.path()).unwrap();
        let mut check = ObjectCheck { bytes_left: 3 << 20, ..ObjectCheck::new() };
        assert!(check.holds(&tree, name.as_ref()) && check.holds(&tree, name.as_ref()));
        assert!(!check.holds(&tree, name.as_ref()), "the rest is less than what is in it");
        for other in ["file", "ab/cd", ".git/HEAD", &name.to_uppercase()] {
            assert!(!ObjectCheck::new().holds(&tree, other.as_ref()), "{other}");
        }
    }
}
