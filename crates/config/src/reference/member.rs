//! The description of a member: its values, its default, its meaning.

use std::fmt;
use std::time::Duration;

/// A member.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Values that may be written.
    pub takes: AcceptedValues,
    /// Default of the member.
    pub default: MemberDefault,
    /// Meaning of the member, in a line.
    pub meaning: &'static str,
    /// Sources that take precedence over the file, or over the default.
    pub overrides: &'static [Override],
    /// True if its value may be a secret, or a location that is one. It is never printed.
    pub is_secret: bool,
    /// True if the samples of its siblings exclude it: another of several members is written.
    pub is_alternative: bool,
    unit: Option<&'static str>,
}

/// A source that takes precedence over the file, or over the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Override {
    /// An option of the command line.
    Flag {
        /// The option, such as `--memory`.
        name: &'static str,
        /// Commands that have it, such as `exec`.
        commands: &'static str,
    },
    /// An environment variable that is used if the file has no value.
    Variable(&'static str),
}

/// Values that may be written.
#[derive(Debug, Clone, Copy)]
pub enum AcceptedValues {
    /// A value.
    One(Scalar),
    /// A list of values.
    List(Scalar),
    /// A list of layers.
    Layers,
    /// A value for each of some categories.
    ByCategory(Scalar),
    /// A value for each of some names, which are the reader's own.
    ByName(Scalar),
    /// Members.
    Section(&'static [Member]),
    /// A list of what has members.
    Sections(&'static [Member]),
}

/// A value. Its `Display` is the `expected` part of the error message for a wrong value.
#[derive(Debug, Clone, Copy)]
pub enum Scalar {
    /// `true` or `false`.
    Boolean,
    /// A whole number: the least and the greatest.
    Whole(u64, u64),
    /// A number of seconds: the least and the greatest, in milliseconds.
    Seconds(u64, u64),
    /// A number from 0 to this one.
    Number(u64),
    /// A size: the least, in bytes.
    Size(u64),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// This value only, and the reason.
    Fixed(&'static str, &'static str),
    /// A text of this form.
    Text(&'static str),
    /// A value of this form, which may be another than a text.
    Any(&'static str),
}

/// Default of an absent member. A sample is a value that may be written; an empty sample of a section consists of its
/// required members.
#[derive(Debug, Clone, Copy)]
pub enum MemberDefault {
    /// This value.
    Value(&'static str),
    /// A default that no value expresses, and a sample.
    Described(&'static str, &'static str),
    /// No default: the member is required. With a sample.
    Required(&'static str),
    /// The defaults of its own members.
    Members,
}

// === impl Member ===

impl Member {
    pub(super) const fn new(
        name: &'static str,
        takes: AcceptedValues,
        default: MemberDefault,
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            takes,
            default,
            meaning,
            overrides: &[],
            is_secret: false,
            is_alternative: false,
            unit: None,
        }
    }

    pub(super) const fn meaning(mut self, meaning: &'static str) -> Self {
        self.meaning = meaning;
        self
    }

    pub(super) const fn in_unit(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    pub(super) const fn overridden_by(mut self, overrides: &'static [Override]) -> Self {
        self.overrides = overrides;
        self
    }

    pub(super) const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    pub(super) const fn alternative(mut self) -> Self {
        self.is_alternative = true;
        self
    }

    /// Returns the members below it, if it has any.
    pub fn below(&self) -> Option<&'static [Self]> {
        match self.takes {
            AcceptedValues::Section(below) | AcceptedValues::Sections(below) => Some(below),
            _ => None,
        }
    }

    /// Returns the unit of its value, if it is an amount.
    pub fn unit(&self) -> Option<&'static str> {
        match self.takes {
            AcceptedValues::One(Scalar::Seconds(..)) => Some("seconds"),
            AcceptedValues::One(Scalar::Size(_)) => Some("bytes"),
            _ => self.unit,
        }
    }

    /// Returns a value that the member accepts, in one line.
    pub fn sample(&self) -> String {
        match self.default {
            MemberDefault::Value(said)
            | MemberDefault::Described(_, said)
            | MemberDefault::Required(said)
                if !said.is_empty() =>
            {
                said.to_owned()
            }
            _ => self.required_members(),
        }
    }

    fn required_members(&self) -> String {
        let required = |below: &[Self]| {
            let is_required = |member: &&Self| matches!(member.default, MemberDefault::Required(_));
            let members = below.iter().filter(is_required);
            let members: Vec<String> =
                members.map(|member| format!("{}: {}", member.name, member.sample())).collect();
            format!("{{{}}}", members.join(", "))
        };
        match self.takes {
            AcceptedValues::Section(below) => required(below),
            AcceptedValues::Sections(below) => format!("[{}]", required(below)),
            _ => String::new(),
        }
    }
}

// === impl Scalar ===

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |millis| Duration::from_millis(millis).as_secs_f64();
        match *self {
            Self::Boolean => f.write_str("`true` or `false`"),
            Self::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Seconds(least, most) => {
                let (least, most) = (seconds(least), seconds(most));
                write!(f, "a number of seconds from {least} to {most}, with up to three places")
            }
            Self::Number(most) => write!(f, "a number from 0 to {most}, with up to three places"),
            Self::Size(least) => {
                write!(f, "a size from {least} bytes on, such as 64m: a whole number and k, m, g or nothing")
            }
            Self::OneOf(names) => write!(f, "one of: {}", names.join(", ")),
            Self::Fixed(value, reason) => write!(f, "`{value}`: {reason}"),
            Self::Text(form) | Self::Any(form) => f.write_str(form),
        }
    }
}
