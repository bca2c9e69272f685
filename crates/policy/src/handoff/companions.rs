//! Files that count because of another file: a tool generates that file from them, or runs them if it exists.
//!
//! GNU make has built-in rules, which apply unless a makefile overrides them: `X.sh` becomes `X`, and `Makefile.sh` the
//! makefile.

use super::TrustKind;
use super::rows::ROWS;
use crate::git::{folded, is_dot_git};

/// Extensions that make compiles or copies to a file without the extension.
const SOURCES: [&str; 17] = [
    ".sh", ".c", ".cc", ".cpp", ".p", ".f", ".m", ".r", ".s", ".mod", ".o", ".y", ".l", ".ym", ".yl", ".w",
    ".web",
];

/// Files that are run in a directory with another file.
const RUN_BESIDE: [(&str, &str, &str); 2] = [
    ("server.js", "package.json", "npm start runs it, where the package has no script of this name"),
    ("server.php", "artisan", "artisan serve runs it"),
];

/// Names of makefiles without an extension.
const MAKEFILES: [&str; 7] =
    ["makefile", "gnumakefile", "bsdmakefile", "makevars", "makeconf", "mkfile", "kbuild"];

/// Directories in which RCS and SCCS keep versions of the files beside them.
const OF_VERSIONS: [&str; 2] = ["rcs", "sccs"];

/// Maximum number of rules that make chains: `s.X.sh`, `RCS/X.sh,v`.
const MOST_RULES: usize = 3;

const MADE_OF_IT: &str = "by a rule of its own, make replaces the file of this name without the ending by it";

/// File that make generates from another one.
struct GeneratedFile {
    path: String,
    /// True if it comes from a version archive: only those have such names.
    is_version: bool,
}

/// Returns the paths beside a new file which make it require an approval if they exist, each with the reason.
pub(super) fn of(path: &str) -> Vec<(String, &'static str)> {
    // Branch names are arbitrary, and make is not run in a repository.
    if path.split('/').any(is_dot_git) {
        return Vec::new();
    }
    let made = targets(path).into_iter().map(|target| (target.path, MADE_OF_IT));
    let (above, name) = path.rsplit_once('/').map_or(("", path), |(above, name)| (above, name));
    let name = folded(name);
    let run = RUN_BESIDE.into_iter().filter(|(known, ..)| *known == name);
    made.chain(run.map(|(_, other, reason)| (join(above, other), reason))).collect()
}

/// Returns the reason why a path requires an approval by the name that make generates from it. The path is folded.
pub(super) fn review(path: &str) -> Option<&'static str> {
    let gains_trust = |target: GeneratedFile| {
        let parts: Vec<&str> = target.path.split('/').collect();
        let name = parts.last().copied().unwrap_or_default();
        // `build.sh` and `setup.c` are ordinary names.
        let is_telling = target.is_version || name.contains('.') || MAKEFILES.contains(&name);
        let mut rows = ROWS.into_iter().flatten().filter(|row| row.kind != TrustKind::Executable);
        is_telling && rows.any(|row| row.at.holds(&parts, (false, false)))
    };
    let made = targets(path).into_iter().any(gains_trust);
    made.then_some("by a rule of its own, make makes a file of it that gains trust")
}

/// Returns the files that make generates from a path by built-in rules.
fn targets(path: &str) -> Vec<GeneratedFile> {
    let mut all: Vec<GeneratedFile> = Vec::new();
    let mut last = vec![GeneratedFile { path: path.to_owned(), is_version: false }];
    for _ in 0..MOST_RULES {
        let next: Vec<GeneratedFile> = last.iter().flat_map(made_of).collect();
        all.append(&mut last);
        last = next;
    }
    all.append(&mut last);
    all.split_off(1)
}

/// Returns the files that a single rule generates.
fn made_of(source: &GeneratedFile) -> Vec<GeneratedFile> {
    let (above, name) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let lower = name.to_ascii_lowercase();
    let without = |end: &str| {
        let stem = lower.strip_suffix(end).filter(|stem| !stem.is_empty())?;
        name.get(..stem.len())
    };
    let mut made = Vec::new();
    for stem in SOURCES.into_iter().filter_map(without) {
        made.push(GeneratedFile { path: join(above, stem), is_version: source.is_version });
    }
    let of_version = without(",v").or_else(|| lower.starts_with("s.").then(|| name.get(2..)).flatten());
    let (outer, directory) = above.rsplit_once('/').unwrap_or(("", above));
    let is_archive = OF_VERSIONS.contains(&folded(directory).as_str());
    if let Some(stem) = of_version.filter(|stem| !stem.is_empty()) {
        made.push(GeneratedFile { path: join(above, stem), is_version: true });
    }
    if is_archive {
        made.push(GeneratedFile { path: join(outer, of_version.unwrap_or(name)), is_version: true });
    }
    made
}

fn join(above: &str, name: &str) -> String {
    match above {
        "" => name.to_owned(),
        above => format!("{above}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        ChangeEntryKind, ChangedPath, TreeContext, TreeLinks, UnknownOutside, review_in_tree,
    };

    fn asks(context: &TreeContext, path: &str, before: Option<ChangeEntryKind>) -> bool {
        let file = Some(ChangeEntryKind::File { is_executable: false });
        !review_in_tree([ChangedPath::new(path, before, file)], context).is_empty()
    }

    #[test]
    fn sources_of_generated_makefiles_require_approval() {
        let none = TreeContext::default();
        for path in "GNUmakefile.sh makefile.sh config.mk.sh a/rules.mak.sh Config.MK.SH package.json.sh version.mk.c \
             Makefile,v RCS/Makefile,v RCS/GNUmakefile SCCS/s.Makefile s.Makefile s.config.mk.sh RCS/config.mk.sh,v \
             configure,v GNUmakefile.y Makevars.sh"
            .split_whitespace()
        {
            assert!(asks(&none, path, None), "{path}");
        }
        // Controls.
        for path in "deploy.sh build.sh src/setup.c src/package.c example.com.sh a,v s.py rcs/client.go src/rcs.c RCS/notes,v \
             main.s parser.y analysis.R a/Info.m mk.sh"
            .split_whitespace()
        {
            assert!(!asks(&none, path, None), "{path}");
        }
    }

    #[test]
    fn new_file_that_make_would_build_from_requires_approval() {
        let mut context = TreeContext::default();
        let all = ["run-tests.sh", "sub/tool.c", "RCS/notes,v", "s.notes", "server.js", "web/server.php"];
        all.iter().for_each(|path| assert!(!asks(&context, path, None), "the control: {path}"));
        let there = ["Run-Tests", "sub/tool", "notes", "package.json", "web/artisan"];
        there.iter().for_each(|path| context.add_file(path));
        for path in all {
            assert!(asks(&context, path, None), "{path}");
            assert!(asks(&context, path, Some(ChangeEntryKind::Directory)), "{path}");
            // The file was its source before.
            assert!(!asks(&context, path, Some(ChangeEntryKind::File { is_executable: false })), "{path}");
        }
        for path in ["deploy.sh", "tool.c", "sub/server.js", "server.php"] {
            assert!(!asks(&context, path, None), "{path}");
        }
        assert_eq!(context.counting_beside(".git/refs/heads/x.sh"), [""; 0], "a branch");
    }

    #[test]
    fn new_file_is_reviewed_by_its_link_names() {
        let mut links = TreeLinks::default();
        links.insert(b"bin/check.sh", b"../lib/x.txt");
        let mut context = TreeContext::default();
        context.add_links(&links, &mut UnknownOutside);
        assert_eq!(context.counting_beside("lib/x.txt"), ["bin/check"]);
        assert!(!asks(&context, "lib/x.txt", None), "the control");
        context.add_file("bin/check");
        assert!(asks(&context, "lib/x.txt", None));
    }
}
