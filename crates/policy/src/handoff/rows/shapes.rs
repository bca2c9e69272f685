//! Paths that are trusted by their shape: a tool names them by a hash, a version or a place, and not by one name.

use crate::git::is_dot_git;

/// Returns true for a shared library by the name that loaders look for: `libx.so.1`, `libx.so.1.2.3`.
pub(super) fn is_versioned_library(parts: &[&str], _is_link: bool) -> bool {
    let version = parts.last().and_then(|name| name.rsplit_once(".so.")).map(|(_, version)| version);
    version.is_some_and(|version| {
        version.split('.').all(|part| part.starts_with(|first: char| first.is_ascii_digit()))
    })
}

/// Returns true for cargo's files of build scripts in any target directory (`target/debug/build/NAME-HASH/output`,
/// `build/NAME/HASH/…`), and for everything below `target`.
pub(super) fn is_kept_by_cargo(parts: &[&str], _is_link: bool) -> bool {
    let is_hash = |part: &str| {
        let hash = part.rsplit('-').next().unwrap_or_default();
        hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let of_build =
        |at: usize| parts.get(at + 1..).is_some_and(|below| below.iter().take(2).any(|part| is_hash(part)));
    let builds = parts.iter().enumerate().filter(|(_, part)| **part == "build");
    if builds.map(|(at, _)| at).any(of_build) {
        return true;
    }
    let target = parts.iter().position(|part| *part == "target");
    let below = target.and_then(|at| parts.get(at + 2..)).unwrap_or_default();
    below.iter().any(|part| matches!(*part, "build" | "incremental"))
}

/// Returns true for modules that setuptools has built and packs instead of sources (`build/lib/x.py`,
/// `build/lib.linux-x86_64-3.12/x.py`).
pub(super) fn is_built_module(parts: &[&str], _is_link: bool) -> bool {
    let is_built = |below: &str| below == "lib" || below.starts_with("lib.") || below.starts_with("scripts-");
    parts.last().is_some_and(|name| name.ends_with(".py"))
        && parts.windows(2).any(|pair| matches!(pair, ["build", below] if is_built(below)))
}

/// Returns true for metadata of installed or built Python packages: entry points, requirements.
pub(super) fn is_python_metadata(parts: &[&str], _is_link: bool) -> bool {
    parts.iter().any(|part| part.ends_with(".egg-info") || part.ends_with(".dist-info"))
}

/// Returns true for lock files of package managers. In a Git repository such a name is a lock, which blocks other processes.
pub(super) fn is_lock_file(parts: &[&str], _is_link: bool) -> bool {
    const ENDS: [&str; 7] =
        [".lock", ".lockfile", ".lock.json", "-lock.json", "-lock.yaml", "-lock.yml", ".lock.hcl"];
    let is_one = parts.last().is_some_and(|name| ENDS.iter().any(|end| name.ends_with(end)));
    is_one && !parts.iter().any(|part| is_dot_git(part))
}

/// Returns true for sources that a package manager has downloaded into the project.
pub(super) fn is_downloaded_source(parts: &[&str], _is_link: bool) -> bool {
    let (Some(name), Some(above)) = (parts.last(), parts.get(..parts.len().saturating_sub(1))) else {
        return false;
    };
    let is_one = |directory: &str, ends: &[&str]| {
        above.contains(&directory) && ends.iter().any(|end| name.ends_with(end))
    };
    is_one("vendor", &[".php", ".inc", ".phtml", ".rb"])
        || is_one("deps", &[".ex", ".exs", ".eex", ".erl", ".hrl"])
        || is_one("pods", &[".m", ".mm", ".swift", ".h", ".sh", ".modulemap"])
}

/// Returns true for Invoke's module of tasks, in the directory where the tool is started.
pub(super) fn is_tasks_package(parts: &[&str], is_link: bool) -> bool {
    parts == ["tasks", "__init__.py"] || (is_link && parts == ["tasks"])
}

/// Returns true for sbt's meta-build (the build of the build).
pub(super) fn is_build_of_sbt(parts: &[&str], _is_link: bool) -> bool {
    let is_source = parts.last().is_some_and(|name| name.ends_with(".scala") || name.ends_with(".sbt"));
    is_source && parts.first() == Some(&"project")
}

/// Returns true for instructions of agents at the top of their working directory.
pub(super) fn is_memory_of_agent(parts: &[&str], _is_link: bool) -> bool {
    let [name] = parts else { return false };
    matches!(
        *name,
        "soul.md" | "tools.md" | "heartbeat.md" | "memory.md" | "bootstrap.md" | "identity.md" | "user.md"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_shapes_match_their_names_and_not_similar_ones() {
        type Shape = fn(&[&str], bool) -> bool;
        let shapes: [(Shape, &str, &str); 9] = [
            (
                is_lock_file,
                "x.lock a/new-lock.yaml",
                ".git/index.lock .git/refs/heads/x.lock lock.rs x.lock.md",
            ),
            (
                is_versioned_library,
                "libx.so.1 a/libx.so.1.2.3 libc++.so.1.0",
                "notes.so.txt x.so so.1 libx.so.md",
            ),
            (
                is_kept_by_cargo,
                "target/debug/build/app-0123456789abcdef/output out/release/build/app-0123456789abcdef/out/x.rs \
                 t/debug/build/app/0123456789abcdef/out/x.rs target/x86_64-unknown-linux-gnu/debug/build/a/output \
                 target/debug/incremental/app-1/s/dep-graph.bin",
                "build/app-0123/output src/build/mod.rs target/build.md docs/target/a.md build/0123456789abcdefa/x",
            ),
            (
                is_built_module,
                "build/lib/x.py build/lib.linux-x86_64-cpython-312/a/x.py",
                "build/lib/x.js build/x.py lib/x.py",
            ),
            (is_python_metadata, "x.egg-info/requires.txt a/x-1.dist-info/RECORD", "egg-info/x dist-info.md"),
            (
                is_downloaded_source,
                "vendor/monolog/src/Logger.php vendor/gems/x.rb deps/foo/lib/x.ex deps/foo/src/x.erl pods/a/x.m",
                "vendor/lib/x.go deps/hiredis/x.c deps.ex pods/list.go src/x.php",
            ),
            (is_tasks_package, "tasks/__init__.py", "app/tasks/__init__.py tasks/build.py tasks"),
            (
                is_build_of_sbt,
                "project/src/main/scala/P.scala project/project/x.sbt",
                "src/project/x.scala project/x.md",
            ),
            (is_memory_of_agent, "soul.md memory.md", "docs/memory.md memory.txt"),
        ];
        for (shape, ones, others) in shapes {
            let holds = |path: &str| shape(&path.to_lowercase().split('/').collect::<Vec<_>>(), false);
            ones.split_whitespace().for_each(|path| assert!(holds(path), "{path}"));
            others.split_whitespace().for_each(|path| assert!(!holds(path), "{path}"));
        }
        assert!(is_tasks_package(&["tasks"], true));
    }
}
