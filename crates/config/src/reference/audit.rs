//! `audit`.

use super::AcceptedValues::{One, Sections};
use super::Member;
use super::MemberDefault::{Described, Required, Value};
use super::Scalar::{Boolean, Text, Whole};

pub(super) const AUDIT: &[Member] = &[Member::new(
    "anchors",
    Sections(ANCHOR),
    Described("none", "[]"),
    "additional destinations of signed audit log checkpoints",
)];

const ANCHOR: &[Member] = &[
    Member::new(
        "to",
        One(Text("a place: `file:/PATH`, `syslog:/PATH` or `s3://BUCKET/PREFIX`")),
        Required("'file:/mnt/other-disk/belljar-audit.notes'"),
        "a file that is appended to, on another disk or host and not in the state directory; the socket of a syslog daemon, which gets a message for each checkpoint (RFC 5424); or a bucket with object lock and a default retention, which gets an object for each (variables `AWS_…` name its endpoint, region and credentials)",
    ),
    Member::new(
        "required",
        One(Boolean),
        Value("false"),
        "whether a record is acknowledged only once this anchor has accepted a checkpoint that covers it",
    ),
    Member::new(
        "every_records",
        One(Whole(1, 1000000)),
        Value("1000"),
        "maximum number of records between two checkpoints",
    ),
    Member::new(
        "every_seconds",
        One(Whole(1, 86400)),
        Value("60"),
        "maximum number of seconds from a record to the checkpoint that covers it",
    )
    .in_unit("seconds"),
];
