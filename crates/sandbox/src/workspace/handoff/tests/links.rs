//! Links by which a change has the trust of another place.

use super::*;

/// A tree with `Makefile`, `proj/` being the tree itself, and where it is on the host.
fn with_link(target: impl AsRef<Path>) -> ReviewTrees {
    let trees = ReviewTrees::new();
    trees.write("tree/rules.txt", "all:\n");
    trees.write("tree/sub/rules.txt", "all:\n");
    std::fs::create_dir(trees.path("tree/sub/dir")).unwrap();
    symlink(target, trees.path("tree/Makefile")).unwrap();
    trees
}

#[test]
fn a_link_counts_whichever_way_it_leads_to_what_was_changed() {
    for (target, changed) in [
        ("rules.txt", "rules.txt"),
        ("../tree/rules.txt", "rules.txt"),
        ("../way/rules.txt", "rules.txt"),
        ("a/../rules.txt", "sub/rules.txt"),
        ("a/../../../tree/sub/rules.txt", "sub/rules.txt"),
        ("b/rules.txt", "sub/rules.txt"),
        ("around/rules.txt", "sub/rules.txt"),
        ("missing/rules.txt", "missing/rules.txt"),
    ] {
        let trees = with_link(target);
        symlink("sub/dir", trees.path("tree/a")).unwrap();
        symlink("../way/sub", trees.path("tree/b")).unwrap();
        symlink("./b/../sub", trees.path("tree/around")).unwrap();
        symlink("tree", trees.path("way")).unwrap();
        trees.write(&format!("layer/{changed}"), "evil\n");
        assert_eq!(trees.asked(), [format!("{changed} build")], "{target}");
        // The control: what the link doesn't lead to.
        let trees = with_link(target);
        symlink("sub/dir", trees.path("tree/a")).unwrap();
        trees.write("layer/other.txt", "other\n");
        assert_eq!(trees.asked(), [""; 0], "{target}");
    }
}

#[test]
fn an_absolute_link_counts_by_whichever_name_of_the_directory() {
    let trees = ReviewTrees::new();
    trees.write("tree/rules.txt", "all:\n");
    symlink("tree", trees.path("other")).unwrap();
    symlink(trees.path("other/../other/rules.txt"), trees.path("tree/Makefile")).unwrap();
    trees.write("layer/rules.txt", "evil\n");
    assert_eq!(trees.asked(), ["rules.txt build"]);
    // The control: to another directory.
    std::fs::create_dir(trees.path("third")).unwrap();
    std::fs::remove_file(trees.path("tree/Makefile")).unwrap();
    symlink(trees.path("third/rules.txt"), trees.path("tree/Makefile")).unwrap();
    assert_eq!(trees.asked(), [""; 0]);
}

#[test]
fn a_link_of_which_it_cannot_be_told_where_it_leads_takes_a_yes() {
    let trees = with_link("/proc/self/cwd/rules.txt");
    trees.write("layer/rules.txt", "evil\n");
    assert_eq!(trees.asked(), ["rules.txt link"]);
    // The control: one that leads to nothing.
    std::fs::remove_file(trees.path("tree/Makefile")).unwrap();
    symlink("/none/of/this", trees.path("tree/Makefile")).unwrap();
    assert_eq!(trees.asked(), [""; 0]);
}

#[test]
fn a_new_link_brings_what_it_leads_to_to_its_place() {
    for (link, file) in [
        ("renv", "activate.R"),
        ("project", "Build.scala"),
        ("deps", "build.jl"),
        (".ropeproject", "config.py"),
        ("requirements", "dev.txt"),
    ] {
        let trees = ReviewTrees::new();
        trees.write(&format!("layer/x/{file}"), "evil\n");
        // The control.
        assert_eq!(trees.asked(), [""; 0], "{file}");
        symlink("x", trees.path(&format!("layer/{link}"))).unwrap();
        let asked = trees.asked().join("\n");
        assert!(asked.contains(&format!("x/{file} ")) && asked.contains(&format!("{link} ")), "{asked}");
        // An existing directory gets its new path by the link alone.
        std::fs::rename(trees.path("layer/x"), trees.path("tree/x")).unwrap();
        let asked = trees.asked();
        assert!(!asked.is_empty() && asked.iter().all(|path| path.starts_with(link)), "{asked:?}");
    }
}

#[test]
fn a_link_through_a_link_of_the_tree_that_leads_out_takes_a_yes() {
    let trees = ReviewTrees::new();
    symlink("/etc", trees.path("tree/exist")).unwrap();
    symlink("sub", trees.path("tree/inside")).unwrap();
    symlink("inside/x", trees.path("layer/l")).unwrap();
    assert_eq!(trees.asked(), [""; 0]);
    symlink("exist/passwd", trees.path("layer/m")).unwrap();
    assert_eq!(trees.asked(), ["m link"]);
}
