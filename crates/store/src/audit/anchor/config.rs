//! `audit` in a configuration.
//!
//! ```yaml
//! audit:
//!   anchors:
//!     - file: /mnt/other-disk/belljar-audit.notes
//!     - syslog: /dev/log
//!       every_seconds: 300
//!     - s3: s3://audit-bucket/node-7
//!       required: true
//! ```

use super::{AnchorSettings, Target};
use belljar_contract::yaml::{Log, Members, Node, boolean, list, text, whole};
use std::path::PathBuf;
use std::time::Duration;

/// The maximum number of records between two checkpoints where the configuration doesn't say.
const EVERY_RECORDS: u64 = 1_000;

/// The maximum age of an undelivered record in seconds where the configuration doesn't say.
const EVERY_SECONDS: u64 = 60;

// === impl AnchorSettings ===

impl AnchorSettings {
    /// An anchor with the usual intervals, which is not required.
    pub fn new(target: Target) -> Self {
        let every = Duration::from_secs(EVERY_SECONDS);
        Self { target, is_required: false, every_records: EVERY_RECORDS, every }
    }

    /// Reads the section `audit`.
    pub fn read_all(node: &Node, log: &mut Log) -> Vec<Self> {
        let Some(mut members) = Members::open(node, log) else { return Vec::new() };
        let anchors = members.or("anchors", Vec::new(), |node, log| list(node, log, Self::read));
        members.finish();
        anchors
    }

    fn read(node: &Node, log: &mut Log) -> Option<Self> {
        let mut members = Members::open(node, log)?;
        let absolute = |value: &str| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
        let path = |node: &Node, log: &mut Log| text(node, log, "an absolute path", absolute);
        let bucket = |value: &str| {
            let name = value.strip_prefix("s3://")?.split('/').next()?;
            (!name.is_empty()).then(|| value.to_owned())
        };
        let targets = [
            members.optional("file", path).map(Target::File),
            members.optional("syslog", path).map(Target::Syslog),
            members
                .optional("s3", |node, log| text(node, log, "a bucket, such as `s3://BUCKET/PREFIX`", bucket))
                .map(Target::Bucket),
        ];
        let is_required = members.or("required", false, boolean);
        let every_records =
            members.or("every_records", EVERY_RECORDS, |node, log| whole(node, log, 1..=1_000_000));
        let every = members.or("every_seconds", EVERY_SECONDS, |node, log| whole(node, log, 1..=86_400));
        let named = ["file", "syslog", "s3"].iter().filter(|name| members.node(name).is_some()).count();
        if named != 1 {
            let found =
                if named == 0 { "an anchor without a place" } else { "an anchor with several places" };
            members.log.note(node.position, &node.path, found, "one of `file`, `syslog` and `s3`");
        }
        members.finish();
        let target = targets.into_iter().flatten().next()?;
        Some(Self { target, is_required, every_records, every: Duration::from_secs(every) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::yaml::{self, Mistakes};

    fn read(text: &str) -> Result<Vec<AnchorSettings>, Mistakes> {
        let mut log = Log::default();
        let root = yaml::parse(text.as_bytes(), &mut log).unwrap();
        let anchors = AnchorSettings::read_all(&root, &mut log);
        log.finish().map(|()| anchors)
    }

    #[test]
    fn anchors_are_read_with_usual_intervals_unless_others_are_given() {
        assert_eq!(read("{}").unwrap(), []);
        let file = Target::File("/mnt/audit.notes".into());
        assert_eq!(read("anchors: [{file: /mnt/audit.notes}]").unwrap(), [AnchorSettings::new(file.clone())]);
        let all = "anchors: [{file: /mnt/audit.notes, required: true, every_records: 5, every_seconds: 7}]";
        let expected = AnchorSettings {
            target: file,
            is_required: true,
            every_records: 5,
            every: Duration::from_secs(7),
        };
        assert_eq!(read(all).unwrap(), [expected]);
    }

    #[test]
    fn anchor_without_exactly_one_place_is_refused() {
        for wrong in [
            "anchors: [{}]",
            "anchors: [{required: true}]",
            "anchors: [{file: /a, syslog: /dev/log}]",
            "anchors: [{file: relative}]",
            "anchors: [{s3: 'https://bucket'}]",
            "anchors: [{s3: 's3://'}]",
            "anchors: [{file: /a, every_records: 0}]",
            "anchors: [{file: /a, every_seconds: 0}]",
            "anchors: {file: /a}",
            "anchor: []",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
