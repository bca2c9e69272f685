//! `inference`.

use super::Takes::{List, One, Section, Sections};
use super::Unsaid::{Means, Members, Required, Stands};
use super::{BOOLEAN, Member, USER};

const NAME: &str = "1 to 200 visible characters of ASCII";
pub(super) const PATH: &str = "the absolute path of a file";
const DOLLARS_A_MILLION: &str = "dollars for a million tokens, such as 0.15";
const COUNT: &str = "a whole number from 1 to 9223372036854775807";

pub(super) const INFERENCE: &[Member] = &[
    Member { name: "providers", takes: Sections(PROVIDER), unsaid: Required(""), meaning: "who answers" },
    Member {
        name: "models",
        takes: Sections(MODEL),
        unsaid: Required(""),
        meaning: "the models that there are",
    },
    Member {
        name: "budget",
        takes: Section(BUDGET),
        unsaid: Members,
        meaning: "how much each run may have of them",
    },
    Member {
        name: "keep_bodies",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether what is said is written into the audit",
    },
];

const PROVIDER: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("house"),
        meaning: "what models call it; each name once",
    },
    Member {
        name: "kind",
        takes: One("one of: anthropic, litellm, ollama, openai"),
        unsaid: Required("openai"),
        meaning: "how it is spoken with",
    },
    Member {
        name: "url",
        takes: One("https://HOST[:PORT][/PREFIX], http://… or unix:/PATH"),
        unsaid: Required("https://models.example.com"),
        meaning: "where it is",
    },
    Member {
        name: "tls",
        takes: Section(TLS),
        unsaid: Means("the system's authorities", ""),
        meaning: "whom to believe, for a `url` with https",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "besides your own user and root, whose server on this machine is shown the credential by plain http",
    },
    Member {
        name: "credential",
        takes: Section(CREDENTIAL),
        unsaid: Means("none is shown", "{env: MODELS_KEY}"),
        meaning: "what it is shown: exactly one of these members",
    },
];

const TLS: &[Member] = &[Member {
    name: "ca",
    takes: One(PATH),
    unsaid: Required("/etc/house/ca.pem"),
    meaning: "the authorities that are believed, and no others (PEM)",
}];

pub(super) const CREDENTIAL: &[Member] = &[
    Member {
        name: "env",
        takes: One("the name of a variable"),
        unsaid: Means("another one is", "MODELS_KEY"),
        meaning: "a variable that holds it",
    },
    Member {
        name: "file",
        takes: One(PATH),
        unsaid: Means("another one is", "/run/keys/models"),
        meaning: "a file that holds it, read again when it changes",
    },
    Member {
        name: "command",
        takes: List("an argument"),
        unsaid: Means("another one is", "[print-key, models]"),
        meaning: "a program that prints it, and its arguments",
    },
];

const MODEL: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("small"),
        meaning: "what programs and jobs call it; each name once",
    },
    Member {
        name: "provider",
        takes: One("the name of a provider: house"),
        unsaid: Required("house"),
        meaning: "who answers for it",
    },
    Member {
        name: "upstream",
        takes: One(NAME),
        unsaid: Means("its `name`", "gpt-4o-mini"),
        meaning: "what its provider calls it",
    },
    Member {
        name: "price",
        takes: Section(PRICE),
        unsaid: Means("unknown; with `ollama` nothing", "{input: 0.15, output: 0.6}"),
        meaning: "what its tokens cost at most, for limits on cost",
    },
];

const PRICE: &[Member] = &[
    Member {
        name: "input",
        takes: One(DOLLARS_A_MILLION),
        unsaid: Required("0.15"),
        meaning: "the dearest price of a token of a request, cache writes included",
    },
    Member {
        name: "output",
        takes: One(DOLLARS_A_MILLION),
        unsaid: Required("0.6"),
        meaning: "the dearest price of a token of an answer",
    },
];

const BUDGET: &[Member] = &[
    Member { name: "calls", takes: One(COUNT), unsaid: Means("no limit", "100"), meaning: "calls in all" },
    Member {
        name: "tokens",
        takes: One(COUNT),
        unsaid: Means("no limit", "1000000"),
        meaning: "tokens in all, in and out",
    },
    Member {
        name: "cost_usd",
        takes: One("dollars, such as 2.5"),
        unsaid: Means("no limit", "2.5"),
        meaning: "what all of them may cost",
    },
    Member { name: "at_once", takes: One(COUNT), unsaid: Stands("64"), meaning: "calls at a time" },
    Member {
        name: "output_tokens",
        takes: One(COUNT),
        unsaid: Stands("8192"),
        meaning: "where `tokens`, or costs by a stated `price`, are limited: the output limit of a call that names none",
    },
    Member {
        name: "file_tokens",
        takes: One(COUNT),
        unsaid: Stands("1048576"),
        meaning: "there, too: what all documents, recordings and videos of one request count as",
    },
    Member {
        name: "audit_bytes",
        takes: One("a size from 1048576 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("512m"),
        meaning: "records in the audit log that one run may cause; beyond it nothing is let through",
    },
    Member {
        name: "audit_bytes_per_second",
        takes: One("a size from 1024 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("32k"),
        meaning: "how fast one run may cause them, once it has caused 32 MiB, or a sixteenth of `audit_bytes` where that is less",
    },
];
