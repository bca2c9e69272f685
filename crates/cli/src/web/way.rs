//! Whether a path leads through a directory: whoever writes there decides what is found at its end.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// As the kernel: so many links in one path are followed.
const MOST_LINKS: u32 = 40;

/// Whether that directory, or a link in it, is on the way to a path's end. Directories are told apart by what they are, as one may
/// have several names.
pub(super) fn leads_through(path: &Path, directory: &Path) -> io::Result<bool> {
    let directory = directory.metadata()?;
    Ok(is_on_the_way(path, (directory.dev(), directory.ino()), MOST_LINKS))
}

fn is_on_the_way(path: &Path, directory: (u64, u64), links: u32) -> bool {
    path.ancestors().any(|place| {
        let is_it = place.metadata().is_ok_and(|found| (found.dev(), found.ino()) == directory);
        let leads_there = || {
            let Ok(target) = place.read_link() else { return false };
            let next = place.parent().unwrap_or(Path::new("/")).join(target);
            // What leads nowhere in the end is on no way, and can't be read either.
            links > 0 && is_on_the_way(&next, directory, links - 1)
        };
        is_it || leads_there()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_testkit::world::World;
    use std::os::unix::fs::symlink;

    #[test]
    fn whoever_has_a_hand_in_a_path_is_found_however_it_is_written() {
        let world = World::new("belljar");
        for name in ["work/inner/policy.yaml", "else/policy.yaml", "work/kept"] {
            world.write(name, "rules: []");
        }
        let at = |name: &str| world.path().join(name);
        symlink(at("work/inner"), at("into")).unwrap();
        symlink(at("else/policy.yaml"), at("work/out.yaml")).unwrap();
        symlink(at("work/out.yaml"), at("by-the-way.yaml")).unwrap();
        symlink("else", at("elsewhere")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        let leads = |name: &str| leads_through(&at(name), &at("work")).unwrap();
        for through in [
            "work/inner/policy.yaml",
            "into/policy.yaml",
            "work/out.yaml",
            "by-the-way.yaml",
            "else/../work/inner/policy.yaml",
        ] {
            assert!(leads(through), "{through}");
        }
        for past in ["else/policy.yaml", "elsewhere/policy.yaml", "loop", "none.yaml"] {
            assert!(!leads(past), "{past}");
        }
        assert!(leads_through(&at("else/policy.yaml"), &at("none")).is_err());
    }
}
