//! Takes disk space, in every way that is easily overlooked.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;

const MEBIBYTE: usize = 1 << 20;

/// Takes so much below a folder and says so; then it stays for a moment, for whoever counts.
pub(super) fn take(kind: &str, folder: &str, mebibytes: &str) -> Result<(), String> {
    let count: usize = mebibytes.parse().map_err(|_| format!("{mebibytes} is no number"))?;
    std::env::set_current_dir(folder).map_err(|error| error.to_string())?;
    let filled = match kind {
        "plain" => plain("plain", count),
        "deleted" => deleted(count),
        "holes" => holes(count),
        "tiny" => tiny(count),
        "deep" => deep(count),
        "hidden" => hidden(count),
        _ => return Err(format!("don't know {kind}")),
    };
    filled.map_err(|error| error.to_string())?;
    println!("filled");
    std::thread::sleep(std::time::Duration::from_secs(4));
    println!("left alone");
    Ok(())
}

fn plain(name: &str, count: usize) -> std::io::Result<()> {
    let mut file = File::create(name)?;
    let chunk = vec![b'x'; MEBIBYTE];
    (0..count).try_for_each(|_| file.write_all(&chunk))
}

/// Open, and without a name. Ends with this process.
fn deleted(count: usize) -> std::io::Result<()> {
    let mut file = File::create("deleted")?;
    fs::remove_file("deleted")?;
    let chunk = vec![b'x'; MEBIBYTE];
    (0..count).try_for_each(|_| file.write_all(&chunk))?;
    std::mem::forget(file);
    Ok(())
}

/// A large file of which little is there, and then more and more.
fn holes(count: usize) -> std::io::Result<()> {
    const APART: u64 = 64 << 20;
    let file = File::create("holes")?;
    file.set_len(1 << 40)?;
    let chunk = vec![b'x'; MEBIBYTE];
    (0..count as u64).try_for_each(|at| file.write_all_at(&chunk, at * APART))
}

/// Files that hold nothing, but have names.
fn tiny(count: usize) -> std::io::Result<()> {
    const IN_A_FOLDER: usize = 1024;
    for folder in 0..count {
        fs::create_dir(format!("tiny{folder}"))?;
        for file in 0..IN_A_FOLDER {
            File::create(format!("tiny{folder}/{file}"))?;
        }
    }
    Ok(())
}

/// Directories in directories, deeper than a path is long.
fn deep(count: usize) -> std::io::Result<()> {
    const IN_A_MEBIBYTE: usize = 256;
    for _ in 0..count * IN_A_MEBIBYTE {
        fs::create_dir("d")?;
        std::env::set_current_dir("d")?;
    }
    Ok(())
}

/// In a directory that its owner has shut.
fn hidden(count: usize) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir("hidden")?;
    plain("hidden/plain", count)?;
    fs::set_permissions("hidden", PermissionsExt::from_mode(0o0))
}
