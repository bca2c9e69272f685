//! `inference`.

use super::AcceptedValues::{List, One, Section, Sections};
use super::MemberDefault::{Means, Members, Required, Stands};
use super::{BOOLEAN, Member, USER};

const NAME: &str = "1 to 200 visible characters of ASCII";
pub(super) const PATH: &str = "the absolute path of a file";
const DOLLARS_A_MILLION: &str = "dollars for a million tokens, such as 0.15";
const COUNT: &str = "a whole number from 1 to 9223372036854775807";

pub(super) const INFERENCE: &[Member] = &[
    Member {
        name: "providers",
        takes: Sections(PROVIDER),
        unsaid: Required(""),
        meaning: "model \
    providers",
    },
    Member { name: "models", takes: Sections(MODEL), unsaid: Required(""), meaning: "available models" },
    Member { name: "budget", takes: Section(BUDGET), unsaid: Members, meaning: "limits for each run" },
    Member {
        name: "keep_bodies",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether request and response bodies are written to the audit log",
    },
];

const PROVIDER: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("house"),
        meaning: "unique name that models refer to",
    },
    Member {
        name: "kind",
        takes: One("one of: anthropic, litellm, ollama, openai"),
        unsaid: Required("openai"),
        meaning: "API of the provider",
    },
    Member {
        name: "url",
        takes: One("https://HOST[:PORT][/PREFIX], http://… or unix:/PATH"),
        unsaid: Required("https://models.example.com"),
        meaning: "URL",
    },
    Member {
        name: "tls",
        takes: Section(TLS),
        unsaid: Means("the system's CA certificates", ""),
        meaning: "trusted CA certificates, for a `url` with https",
    },
    Member {
        name: "user",
        takes: One(USER),
        unsaid: Means("your own user and root", "any"),
        meaning: "users besides your own and root whose local servers may receive the credential over \
    plain http",
    },
    Member {
        name: "credential",
        takes: Section(CREDENTIAL),
        unsaid: Means("no credential", "{env: MODELS_KEY}"),
        meaning: "source of the credential: exactly one of these members",
    },
];

const TLS: &[Member] = &[Member {
    name: "ca",
    takes: One(PATH),
    unsaid: Required("/etc/house/ca.pem"),
    meaning: "the only trusted CA certificates (PEM)",
}];

pub(super) const CREDENTIAL: &[Member] = &[
    Member {
        name: "env",
        takes: One("the name of a variable"),
        unsaid: Means("another source is used", "MODELS_KEY"),
        meaning: "environment variable that contains it",
    },
    Member {
        name: "file",
        takes: One(PATH),
        unsaid: Means("another source is used", "/run/keys/models"),
        meaning: "file that contains it; read again when it changes",
    },
    Member {
        name: "command",
        takes: List("an argument"),
        unsaid: Means("another source is used", "[print-key, models]"),
        meaning: "program that prints it, and its arguments",
    },
];

const MODEL: &[Member] = &[
    Member {
        name: "name",
        takes: One(NAME),
        unsaid: Required("small"),
        meaning: "unique name that programs and jobs use",
    },
    Member {
        name: "provider",
        takes: One("the name of a provider: house"),
        unsaid: Required("house"),
        meaning: "provider of the model",
    },
    Member {
        name: "upstream",
        takes: One(NAME),
        unsaid: Means("its `name`", "gpt-4o-mini"),
        meaning: "the provider's name for the model",
    },
    Member {
        name: "price",
        takes: Section(PRICE),
        unsaid: Means("unknown; with `ollama` nothing", "{input: 0.15, output: 0.6}"),
        meaning: "maximum price of its tokens, for cost limits",
    },
];

const PRICE: &[Member] = &[
    Member {
        name: "input",
        takes: One(DOLLARS_A_MILLION),
        unsaid: Required("0.15"),
        meaning: "highest price of request tokens, cache writes included",
    },
    Member {
        name: "output",
        takes: One(DOLLARS_A_MILLION),
        unsaid: Required("0.6"),
        meaning: "highest price of response tokens",
    },
];

const BUDGET: &[Member] = &[
    Member {
        name: "calls",
        takes: One(COUNT),
        unsaid: Means("no limit", "100"),
        meaning: "maximum \
    number of calls",
    },
    Member {
        name: "tokens",
        takes: One(COUNT),
        unsaid: Means("no limit", "1000000"),
        meaning: "maximum number of tokens, input and output",
    },
    Member {
        name: "cost_usd",
        takes: One("dollars, such as 2.5"),
        unsaid: Means("no limit", "2.5"),
        meaning: "maximum total cost",
    },
    Member { name: "at_once", takes: One(COUNT), unsaid: Stands("64"), meaning: "maximum concurrent calls" },
    Member {
        name: "output_tokens",
        takes: One(COUNT),
        unsaid: Stands("8192"),
        meaning: "output limit of calls that set none, where `tokens` or a cost with a `price` is limited",
    },
    Member {
        name: "file_tokens",
        takes: One(COUNT),
        unsaid: Stands("1048576"),
        meaning: "token estimate for all documents, recordings and videos of one request, under these \
    limits",
    },
    Member {
        name: "audit_bytes",
        takes: One("a size from 1048576 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("512m"),
        meaning: "maximum size of a run's audit records; beyond it all requests are denied",
    },
    Member {
        name: "audit_bytes_per_second",
        takes: One("a size from 1024 bytes on, such as 64m: a whole number and k, m, g or nothing"),
        unsaid: Stands("32k"),
        meaning: "rate limit of a run's audit records, once it has caused 32 MiB, or a sixteenth of \
    `audit_bytes` if that is less",
    },
];
