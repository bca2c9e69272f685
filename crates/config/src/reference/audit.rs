//! `audit`.

use super::AcceptedValues::{One, Sections};
use super::MemberDefault::{Means, Required, Stands};
use super::{BOOLEAN, Member};

pub(super) const AUDIT: &[Member] = &[Member {
    name: "anchors",
    takes: Sections(ANCHOR),
    unsaid: Means("none", "[]"),
    meaning: "additional destinations of signed audit log checkpoints",
}];

const ANCHOR: &[Member] = &[
    Member {
        name: "to",
        takes: One("a place: `file:/PATH`, `syslog:/PATH` or `s3://BUCKET/PREFIX`"),
        unsaid: Required("'file:/mnt/other-disk/belljar-audit.notes'"),
        meaning: "a file that is appended to, on another disk or host and not in the state directory; the socket of a syslog \
            daemon, which gets a message for each checkpoint (RFC 5424); or a bucket with object lock and a default retention, \
            which gets an object for each (variables `AWS_…` name its endpoint, region and credentials)",
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
