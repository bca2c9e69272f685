//! `audit` in a configuration.
//!
//! ```yaml
//! audit:
//!   anchors:
//!     - to: file:/mnt/other-disk/belljar-audit.notes
//!     - to: syslog:/dev/log
//!       every_seconds: 300
//!     - to: s3://audit-bucket/node-7
//!       required: true
//! ```

use super::{AnchorSettings, AnchorTarget};
use belljar_contract::yaml::{Members, MistakeLog, Node, boolean, list, text, whole};
use std::path::PathBuf;
use std::time::Duration;

/// Default maximum number of records between two checkpoints.
const EVERY_RECORDS: u64 = 1_000;

/// Default maximum age of an undelivered record, in seconds.
const EVERY_SECONDS: u64 = 60;

/// Description of the accepted syntax, for error messages.
const PLACE: &str = "a place: `file:/PATH`, `syslog:/PATH` or `s3://BUCKET/PREFIX`";

// === impl AnchorSettings ===

impl AnchorSettings {
    /// An anchor with the usual intervals, which is not required.
    pub fn new(target: AnchorTarget) -> Self {
        let every = Duration::from_secs(EVERY_SECONDS);
        Self { target, is_required: false, every_records: EVERY_RECORDS, every }
    }

    /// Reads the section `audit`.
    pub fn read_all(node: &Node, log: &mut MistakeLog) -> Vec<Self> {
        let Some(mut members) = Members::open(node, log) else { return Vec::new() };
        let anchors = members.or("anchors", Vec::new(), |node, log| list(node, log, Self::read));
        members.finish();
        anchors
    }

    fn read(node: &Node, log: &mut MistakeLog) -> Option<Self> {
        let mut members = Members::open(node, log)?;
        let target = members.required("to", |node, log| text(node, log, PLACE, AnchorTarget::parse));
        let is_required = members.or("required", false, boolean);
        let every_records =
            members.or("every_records", EVERY_RECORDS, |node, log| whole(node, log, 1..=1_000_000));
        let every = members.or("every_seconds", EVERY_SECONDS, |node, log| whole(node, log, 1..=86_400));
        members.finish();
        Some(Self { target: target?, is_required, every_records, every: Duration::from_secs(every) })
    }
}

// === impl AnchorTarget ===

impl AnchorTarget {
    /// Reads what [`AnchorTarget`] displays.
    fn parse(text: &str) -> Option<Self> {
        let absolute = |path: &str| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        match text.split_once(':')? {
            ("file", path) => absolute(path).map(Self::File),
            ("syslog", path) => absolute(path).map(Self::Syslog),
            ("s3", rest) => {
                let bucket = rest.strip_prefix("//")?.split('/').next()?;
                (!bucket.is_empty()).then(|| Self::Bucket(text.to_owned()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::yaml::{self, Mistakes};

    fn read(text: &str) -> Result<Vec<AnchorSettings>, Mistakes> {
        let mut log = MistakeLog::default();
        let root = yaml::parse(text.as_bytes(), &mut log).unwrap();
        let anchors = AnchorSettings::read_all(&root, &mut log);
        log.finish().map(|()| anchors)
    }

    #[test]
    fn anchor_intervals_have_defaults() {
        assert_eq!(read("{}").unwrap(), []);
        let file = AnchorTarget::File("/mnt/audit.notes".into());
        let usual = read("anchors: [{to: 'file:/mnt/audit.notes'}]").unwrap();
        assert_eq!(usual, [AnchorSettings::new(file.clone())]);
        let all =
            "anchors: [{to: 'file:/mnt/audit.notes', required: true, every_records: 5, every_seconds: 7}]";
        let expected = AnchorSettings {
            target: file,
            is_required: true,
            every_records: 5,
            every: Duration::from_secs(7),
        };
        assert_eq!(read(all).unwrap(), [expected]);
    }

    #[test]
    fn anchor_target_parses_its_displayed_form() {
        for text in ["file:/mnt/a:b", "syslog:/dev/log", "s3://bucket", "s3://bucket/prefix"] {
            assert_eq!(AnchorTarget::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn anchor_without_a_valid_target_is_rejected() {
        for wrong in [
            "anchors: [{}]",
            "anchors: [{required: true}]",
            "anchors: [{to: 'file:relative'}]",
            "anchors: [{to: /mnt/audit.notes}]",
            "anchors: [{to: 'https://bucket'}]",
            "anchors: [{to: 's3://'}]",
            "anchors: [{to: 'syslog:'}]",
            "anchors: [{to: 'file:/a', every_records: 0}]",
            "anchors: [{to: 'file:/a', every_seconds: 0}]",
            "anchors: {to: 'file:/a'}",
            "anchor: []",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
