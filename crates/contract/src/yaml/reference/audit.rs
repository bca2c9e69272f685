//! `audit`.

use super::Takes::{One, Sections};
use super::Unsaid::{Means, Stands};
use super::{BOOLEAN, Member};

pub(super) const AUDIT: &[Member] = &[Member {
    name: "anchors",
    takes: Sections(ANCHOR),
    unsaid: Means("none", "[]"),
    meaning: "second places that signed checkpoints of the audit log are delivered to",
}];

const ANCHOR: &[Member] = &[
    Member {
        name: "file",
        takes: One("an absolute path"),
        unsaid: Means("one of `file`, `syslog` and `s3` is required", "/mnt/other-disk/belljar-audit.notes"),
        meaning: "a file that checkpoints are appended to; keep it on another disk or host, not in the state directory",
    },
    Member {
        name: "syslog",
        takes: One("an absolute path"),
        unsaid: Means("no syslog", ""),
        meaning: "the socket of a syslog daemon, such as /dev/log, which gets a message for each checkpoint (RFC 5424)",
    },
    Member {
        name: "s3",
        takes: One("a bucket, such as `s3://BUCKET/PREFIX`"),
        unsaid: Means("no bucket", ""),
        meaning: "a bucket with object lock and a default retention, which gets an object for each checkpoint; \
            variables `AWS_…` name its endpoint, region and credentials",
    },
    Member {
        name: "required",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether a record is acknowledged only once this anchor has accepted a checkpoint that covers it",
    },
    Member {
        name: "every_records",
        takes: One("a whole number from 1 to 1000000"),
        unsaid: Stands("1000"),
        meaning: "maximum number of records between two checkpoints",
    },
    Member {
        name: "every_seconds",
        takes: One("a whole number from 1 to 86400"),
        unsaid: Stands("60"),
        meaning: "maximum number of seconds from a record to the checkpoint that covers it",
    },
];
