//! The workspace of a sandbox that lives, as its host reaches it.

use belljar_confine::plan::Identity;
use belljar_files::directory::Directory;

/// A workspace by its descriptors. Programs in the sandbox may change everything meanwhile.
#[derive(Debug)]
pub struct HeldWorkspace {
    /// The workspace as the sandbox sees it; only a place to begin paths at.
    pub shown: Directory,
    /// Layers of the workspace, if it is a copy.
    pub layers: Option<CopyLayers>,
    /// User of the sandbox on the host, and owner of the files that are made in it.
    pub owner: Identity,
}

/// The layers of a workspace that is a copy.
#[derive(Debug)]
pub struct CopyLayers {
    /// The directory that was copied.
    pub source: Directory,
    /// The changes to it.
    pub upper: Directory,
}
