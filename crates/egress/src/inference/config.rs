//! `inference`: the providers of models, and each run's budget for them.
//!
//! ```yaml
//! inference:
//!   providers:
//!     - name: house
//!       kind: litellm                    # litellm, openai, anthropic, ollama
//!       url: http://127.0.0.1:4000
//!       credential: {env: LITELLM_MASTER_KEY}   # or {file: PATH}, or {command: [PROGRAM, …]}
//!       user: litellm                    # user who may serve it on this machine, besides this user and root: a name, an id or any
//!     - name: other
//!       kind: openai
//!       url: https://api.example.com
//!       tls: {ca: /etc/house/ca.pem}    # instead of the system's authorities
//!   models:
//!     - {name: small, provider: house, upstream: gpt-4o-mini, price: {input: 0.15, output: 0.6}}
//!   budget: {calls: 100, tokens: 1000000, cost_usd: 2.5, at_once: 8}
//!   keep_bodies: false                         # whether bodies are written to the audit log
//! ```

use super::budget::{BudgetLimits, FILE_TOKENS, OUTPUT_TOKENS};
use super::models::{Model, Models, Price, Provider, ProviderKind};
use crate::audit_quota::{self, AuditLimits};
use crate::credential::{Credential, read_source};
use crate::upstream::{Upstream, read_user};
use belljar_contract::yaml::{
    Members, MistakeLog, Node, boolean, list, one_of, place, quoted, text, text_or_number, thousandths, whole,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The section, checked.
#[derive(Clone, Default)]
pub struct InferenceConfig {
    /// All configured models.
    pub models: Models,
    /// Budget of each run.
    pub budget: BudgetLimits,
    /// True if the bodies of calls are written to the audit log.
    pub keeps_bodies: bool,
}

const KINDS: [(&str, ProviderKind); 4] = [
    ("litellm", ProviderKind::LiteLlm),
    ("openai", ProviderKind::OpenAi),
    ("anthropic", ProviderKind::Anthropic),
    ("ollama", ProviderKind::Ollama),
];

/// Default number of concurrent calls: more than any agent makes, and few enough to leave resources.
const AT_ONCE: Option<usize> = Some(64);
const UNSAID: BudgetLimits = BudgetLimits {
    calls: None,
    tokens: None,
    cost: None,
    at_once: AT_ONCE,
    output_tokens: Some(OUTPUT_TOKENS),
    file_tokens: Some(FILE_TOKENS),
    audit: AuditLimits::USUAL,
};

// === impl InferenceConfig ===

impl InferenceConfig {
    /// Reads the section. Errors in it go to `log`.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let Some(mut members) = Members::open(node, log) else { return Self::default() };
        let providers: Vec<Arc<Provider>> = members.required("providers", |node, log| {
            let all = list(node, log, provider).unwrap_or_default();
            unique(node, log, all.iter().map(|provider| provider.name.as_str()));
            all
        });
        let providers: BTreeMap<&str, &Arc<Provider>> =
            providers.iter().map(|provider| (provider.name.as_str(), provider)).collect();
        let models = members.required("models", |node, log| {
            let all = list(node, log, |node, log| model(node, log, &providers)).unwrap_or_default();
            unique(node, log, all.iter().map(|model| model.name.as_str()));
            all
        });
        let budget = members.optional("budget", |node, log| Some(budget(node, log))).unwrap_or(UNSAID);
        let keeps_bodies = members.or("keep_bodies", false, boolean);
        members.finish();
        Self { models: models.into_iter().collect(), budget, keeps_bodies }
    }
}

fn provider(node: &Node, log: &mut MistakeLog) -> Option<Arc<Provider>> {
    let mut members = Members::open(node, log)?;
    let name = members.required("name", name);
    let kind = members.required("kind", |node, log| one_of(node, log, &KINDS));
    let upstream = members.required("url", |node, log| {
        text(node, log, "https://HOST[:PORT][/PREFIX], http://… or unix:/PATH", |text| {
            Upstream::parse(text).ok()
        })
    });
    let upstream = match members.optional("tls", |node, log| tls(node, log, upstream.clone())) {
        Some(trusting) => Some(trusting),
        None => upstream,
    };
    let upstream = read_user(&mut members, upstream);
    let credential =
        members.optional("credential", read_source).map(|source| Arc::new(Credential::new(source)));
    members.finish();
    let upstream = match credential {
        Some(_) => upstream?,
        None => upstream?.without_credential(),
    };
    Some(Arc::new(Provider { name: name?, kind: kind?, upstream, credential }))
}

/// Returns the upstream, trusting the given authority.
fn tls(node: &Node, log: &mut MistakeLog, upstream: Option<Upstream>) -> Option<Upstream> {
    let mut members = Members::open(node, log)?;
    let authority = members.required("ca", |node, log| {
        text(node, log, "the absolute path of a file", |text| {
            text.starts_with('/').then(|| PathBuf::from(text))
        })
    });
    members.finish();
    // An error in the URL is reported elsewhere.
    let trusting = upstream?.trusting(authority?);
    if trusting.is_none() {
        log.note(node.position, place(node), "`tls` for a url without it", "a url that begins with https://");
    }
    trusting
}

fn model(node: &Node, log: &mut MistakeLog, providers: &BTreeMap<&str, &Arc<Provider>>) -> Option<Model> {
    let mut members = Members::open(node, log)?;
    let name = members.required("name", name);
    let provider = members.required("provider", |node, log| {
        let known: Vec<&str> = providers.keys().copied().collect();
        let expected = format!("the name of a provider: {}", known.join(", "));
        text(node, log, &expected, |text| providers.get(text).map(|provider| Arc::clone(provider)))
    });
    let upstream_name = members.optional("upstream", self::name);
    let stated_price = members.optional("price", price);
    members.finish();
    let name = name?;
    let upstream_name = upstream_name.unwrap_or_else(|| name.clone());
    Some(Model { upstream_name, name, provider: provider?, stated_price })
}

/// Reads a price in US dollars for a million tokens.
fn price(node: &Node, log: &mut MistakeLog) -> Option<Price> {
    let mut members = Members::open(node, log)?;
    let dollars = |node: &Node, log: &mut MistakeLog| {
        text_or_number(node, log, "dollars for a million tokens, such as 0.15", thousandths)
    };
    let (input, output) = (members.required("input", dollars), members.required("output", dollars));
    members.finish();
    Some(Price { input: input?, output: output? })
}

/// Reads the name of a model or a provider, as it may stand in a request.
fn name(node: &Node, log: &mut MistakeLog) -> Option<String> {
    const LONGEST: usize = 200;
    let is_name = |text: &str| {
        !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    text_or_number(node, log, "1 to 200 visible characters of ASCII", |text| {
        is_name(text).then(|| text.to_owned())
    })
}

fn unique<'n>(node: &Node, log: &mut MistakeLog, names: impl Iterator<Item = &'n str>) {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            log.note(node.position, place(node), format!("{} twice", quoted(name)), "each name once");
        }
    }
}

fn budget(node: &Node, log: &mut MistakeLog) -> BudgetLimits {
    let Some(mut members) = Members::open(node, log) else { return UNSAID };
    let count = |node: &Node, log: &mut MistakeLog| whole(node, log, 1..=u64::MAX >> 1);
    let read = BudgetLimits {
        calls: members.optional("calls", count),
        tokens: members.optional("tokens", count),
        cost: members.optional("cost_usd", |node, log| {
            text_or_number(node, log, "dollars, such as 2.5", |text| Some(thousandths(text)? as f64 / 1000.0))
        }),
        output_tokens: members.optional("output_tokens", count).or(Some(OUTPUT_TOKENS)),
        file_tokens: members.optional("file_tokens", count).or(Some(FILE_TOKENS)),
        audit: audit_quota::limits(&mut members),
        at_once: members.optional("at_once", count).and_then(|most| usize::try_from(most).ok()).or(AT_ONCE),
    };
    members.finish();
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::yaml;
    use belljar_trusted::tcp_server::ServerUser;

    fn read(text: &str) -> Result<InferenceConfig, String> {
        let mut log = MistakeLog::default();
        let config =
            yaml::parse(text.as_bytes(), &mut log).map(|root| InferenceConfig::read(&root, &mut log));
        log.finish().map_err(|mistakes| mistakes.to_string())?;
        Ok(config.unwrap())
    }

    #[test]
    fn model_uses_its_own_name_upstream_unless_another_is_configured() {
        let config = read(
            "providers:\n  - {name: house, kind: litellm, url: 'http://127.0.0.1:4000', credential: {env: KEY}}\n  \
             - {name: own, kind: ollama, url: 'unix:/run/ollama'}\nmodels:\n  \
             - {name: small, provider: house, upstream: gpt-4o-mini}\n  - {name: 'llama3:8b', provider: own}\n\
             budget: {calls: 3, cost_usd: 2.5}\n",
        )
        .unwrap();
        let small = config.models.get("small").unwrap();
        assert_eq!(
            (small.upstream_name.as_str(), small.provider.kind),
            ("gpt-4o-mini", ProviderKind::LiteLlm)
        );
        assert_eq!(config.models.get("llama3:8b").unwrap().upstream_name, "llama3:8b");
        assert_eq!(
            (config.budget.calls, config.budget.cost, config.budget.at_once),
            (Some(3), Some(2.5), AT_ONCE)
        );
    }

    #[test]
    fn tls_ca_is_accepted_only_for_https_providers() {
        let with = |url: &str, tls: &str| {
            read(&format!(
                "providers: [{{name: a, kind: openai, url: '{url}', tls: {tls}}}]\nmodels: [{{name: m, provider: a}}]"
            ))
        };
        let house = with("https://models.house", "{ca: /etc/house.pem}").unwrap();
        let expected = Upstream::parse("https://models.house").unwrap().trusting("/etc/house.pem".into());
        let expected = expected.map(Upstream::without_credential);
        assert_eq!(Some(&house.models.get("m").unwrap().provider.upstream), expected.as_ref());
        for (url, tls, why) in [
            ("http://models.house", "{ca: /etc/house.pem}", "tls: found `tls` for a url without it"),
            ("unix:/run/model", "{ca: /etc/house.pem}", "tls: found `tls` for a url without it"),
            ("https://models.house", "{ca: house.pem}", "tls.ca: found"),
            ("https://models.house", "{}", "tls.ca: found nothing"),
            ("https://models.house", "{ca: /a, verify: false}", "tls.verify: found an unknown member"),
        ] {
            let mistakes = with(url, tls).err().unwrap();
            assert!(mistakes.contains(why), "{url} {tls}: {mistakes}");
        }
    }

    #[test]
    fn server_user_is_accepted_only_for_plain_http_providers() {
        let with = |url: &str, more: &str| {
            read(&format!(
                "providers: [{{name: a, kind: openai, url: '{url}'{more}}}]\nmodels: [{{name: m, provider: a}}]"
            ))
        };
        let upstream = |more: &str| {
            let config = with("http://127.0.0.1:4000", more).unwrap();
            config.models.get("m").unwrap().provider.upstream.clone()
        };
        let plain = Upstream::parse("http://127.0.0.1:4000").unwrap();
        let served = |user| plain.clone().served_by(user).unwrap();
        assert_eq!(upstream(", credential: {env: KEY}"), plain);
        assert_eq!(upstream(""), plain.clone().without_credential());
        assert_eq!(upstream(", user: 998, credential: {env: KEY}"), served(ServerUser::Also(998)));
        assert_eq!(upstream(", user: any, credential: {env: KEY}"), served(ServerUser::Any));
        assert_eq!(upstream(", user: root"), served(ServerUser::Also(0)));
        for (url, user, why) in [
            ("https://models.house", "any", "user: found `user` for a url that isn't plain http"),
            ("unix:/run/model", "any", "user: found `user` for a url that isn't plain http"),
            ("http://127.0.0.1:1", "www data", "user: found"),
        ] {
            let mistakes = with(url, &format!(", user: {user}")).err().unwrap();
            assert!(mistakes.contains(why), "{url} {user}: {mistakes}");
        }
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let mistakes = read(
            "providers:\n  - {name: house, kind: litelm, url: 'https//x', credential: {env: A, file: /b}}\n  \
             - {name: own, kind: ollama, url: 'unix:/run/ollama', key: 1}\n  \
             - {name: own, kind: ollama, url: 'unix:/run/ollama'}\nmodels:\n  \
             - {name: small, provider: hose}\n  - {name: a b, provider: own}\n  - {provider: own}\n  \
             - {name: c, provider: own}\n  - {name: c, provider: own}\nbudget: {call: 3, cost_usd: much}\n",
        )
        .err()
        .unwrap();
        insta::assert_snapshot!(mistakes);
    }
}
