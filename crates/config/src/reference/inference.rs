//! `inference`.

use super::AcceptedValues::{List, One, Section, Sections};
use super::MemberDefault::{Described, Members, Required, Value};
use super::Scalar::{Any, Boolean, OneOf, Size, Text, Whole};
use super::{Member, Scalar, USER};

const NAME: Scalar = Text("1 to 200 visible characters of ASCII");
pub(super) const PATH: Scalar = Text("the absolute path of a file");
const DOLLARS_A_MILLION: Scalar = Any("dollars for a million tokens, such as 0.15");
const COUNT: Scalar = Whole(1, 9223372036854775807);

pub(super) const INFERENCE: &[Member] = &[
    Member::new("providers", Sections(PROVIDER), Required(""), "model providers"),
    Member::new("models", Sections(MODEL), Required(""), "available models"),
    Member::new("budget", Section(BUDGET), Members, "limits for each run"),
    Member::new(
        "keep_bodies",
        One(Boolean),
        Value("false"),
        "whether request and response bodies are written to the audit log",
    ),
];

const PROVIDER: &[Member] = &[
    Member::new("name", One(NAME), Required("house"), "unique name that models refer to"),
    Member::new(
        "kind",
        One(OneOf(&["anthropic", "litellm", "ollama", "openai"])),
        Required("openai"),
        "API of the provider",
    ),
    Member::new(
        "url",
        One(Text("https://HOST[:PORT][/PREFIX], http://… or unix:/PATH")),
        Required("https://models.example.com"),
        "URL",
    ),
    Member::new(
        "tls",
        Section(TLS),
        Described("the system's CA certificates", ""),
        "trusted CA certificates, for a `url` with https",
    ),
    Member::new(
        "user",
        One(USER),
        Described("your own user and root", "any"),
        "users besides your own and root whose local servers may receive the credential over plain http",
    )
    .alternative(),
    Member::new(
        "credential",
        Section(CREDENTIAL),
        Described("no credential", "{env: MODELS_KEY}"),
        "source of the credential: exactly one of these members",
    ),
];

const TLS: &[Member] =
    &[Member::new("ca", One(PATH), Required("/etc/house/ca.pem"), "the only trusted CA certificates (PEM)")];

pub(super) const CREDENTIAL: &[Member] = &[
    Member::new(
        "env",
        One(Text("the name of a variable")),
        Described("another source is used", "MODELS_KEY"),
        "environment variable that contains it",
    ),
    Member::new(
        "file",
        One(PATH),
        Described("another source is used", "/run/keys/models"),
        "file that contains it; read again when it changes",
    )
    .alternative(),
    Member::new(
        "command",
        List(Text("an argument")),
        Described("another source is used", "[print-key, models]"),
        "program that prints it, and its arguments",
    )
    .alternative()
    .secret(),
];

const MODEL: &[Member] = &[
    Member::new("name", One(NAME), Required("small"), "unique name that programs and jobs use"),
    Member::new(
        "provider",
        One(Text("the name of a provider: house")),
        Required("house"),
        "provider of the model",
    ),
    Member::new(
        "upstream",
        One(NAME),
        Described("its `name`", "gpt-4o-mini"),
        "the provider's name for the model",
    ),
    Member::new(
        "price",
        Section(PRICE),
        Described("unknown; with `ollama` nothing", "{input: 0.15, output: 0.6}"),
        "maximum price of its tokens, for cost limits",
    ),
];

const PRICE: &[Member] = &[
    Member::new(
        "input",
        One(DOLLARS_A_MILLION),
        Required("0.15"),
        "highest price of request tokens, cache writes included",
    ),
    Member::new("output", One(DOLLARS_A_MILLION), Required("0.6"), "highest price of response tokens"),
];

const BUDGET: &[Member] = &[
    Member::new("calls", One(COUNT), Described("no limit", "100"), "maximum number of calls"),
    Member::new(
        "tokens",
        One(COUNT),
        Described("no limit", "1000000"),
        "maximum number of tokens, input and output",
    )
    .in_unit("tokens"),
    Member::new(
        "cost_usd",
        One(Any("dollars, such as 2.5")),
        Described("no limit", "2.5"),
        "maximum total cost",
    ),
    Member::new("at_once", One(COUNT), Value("64"), "maximum concurrent calls"),
    Member::new(
        "output_tokens",
        One(COUNT),
        Value("8192"),
        "output limit of calls that set none, where `tokens` or a cost with a `price` is limited",
    )
    .in_unit("tokens"),
    Member::new(
        "file_tokens",
        One(COUNT),
        Value("1048576"),
        "token estimate for all documents, recordings and videos of one request, under these limits",
    )
    .in_unit("tokens"),
    Member::new(
        "audit_bytes",
        One(Size(1048576)),
        Value("512m"),
        "maximum size of a run's audit records; beyond it all requests are denied",
    ),
    Member::new(
        "audit_bytes_per_second",
        One(Size(1024)),
        Value("32k"),
        "rate limit of a run's audit records, once it has caused 32 MiB, or a sixteenth of `audit_bytes` if that is less",
    ),
];
