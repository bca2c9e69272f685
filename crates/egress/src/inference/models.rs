//! Which models a run may use, and who answers for each.

use crate::credential::{Credential, CredentialError};
use crate::upstream::Upstream;
use belljar_contract::job::context::InferenceSource;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use belljar_contract::inference::ProviderKind;
use belljar_contract::inference::Surface;

/// Somebody who answers calls.
pub struct Provider {
    /// Its name in the configuration.
    pub name: String,
    /// What it is.
    pub kind: ProviderKind,
    /// Where it is.
    pub upstream: Upstream,
    /// What it wants to see.
    pub credential: Option<Arc<Credential>>,
}

/// A model, by the name that runs know it by.
#[derive(Clone)]
pub struct Model {
    /// What it is called here.
    pub name: String,
    /// What its provider calls it.
    pub upstream_name: String,
    /// Who answers for it.
    pub provider: Arc<Provider>,
    /// What is stated of its price in the configuration.
    pub stated_price: Option<Price>,
}

/// The dearest price of a model's tokens, in billionths of a dollar each, which is thousandths of a dollar for a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Of a token of a request.
    pub input: u64,
    /// Of a token of an answer.
    pub output: u64,
}

/// The models that one run may use, by name.
#[derive(Clone, Default)]
pub struct Models(BTreeMap<String, Model>);

/// There is no such model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no model {name:?}")]
pub struct UnknownModel {
    /// What was asked for.
    pub name: String,
    /// What there is.
    pub known: Vec<String>,
}

/// A provider of a model has a credential that can't be used. What it says is for the host.
#[derive(Debug, thiserror::Error)]
#[error("the credential of the provider {provider:?} can't be used")]
pub struct NoCredentialError {
    /// Its name in the configuration.
    pub provider: String,
    /// Why not.
    #[source]
    pub source: CredentialError,
}

// === impl Model ===

impl Model {
    /// Its price, where one is known: Ollama charges nothing unless a price is stated.
    pub(crate) fn price(&self) -> Option<Price> {
        let of_kind = (self.provider.kind == ProviderKind::Ollama).then_some(Price::FREE);
        self.stated_price.or(of_kind)
    }
}

// === impl Price ===

impl Price {
    /// Of models that cost nothing.
    pub(crate) const FREE: Self = Self { input: 0, output: 0 };

    /// What so many tokens cost, in billionths of a dollar.
    pub(crate) fn nano_dollars(self, input: u64, output: u64) -> u64 {
        self.input.saturating_mul(input).saturating_add(self.output.saturating_mul(output))
    }

    /// What so many tokens cost, in millionths of a dollar, rounded up.
    pub(crate) fn micro_dollars(self, input: u64, output: u64) -> u64 {
        self.nano_dollars(input, output).div_ceil(1_000)
    }
}

// === impl Models ===

impl Models {
    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.0.values()
    }

    /// The model of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Model> {
        self.0.get(name)
    }

    /// These alone.
    ///
    /// # Errors
    /// [`UnknownModel`] for the first that isn't there.
    pub fn only(&self, names: &[String]) -> Result<Self, UnknownModel> {
        let find = |name: &String| self.get(name).cloned().ok_or_else(|| self.unknown(name));
        names.iter().map(find).collect()
    }

    /// Those of that source: `worker` means providers on this machine, `api_egress` all others (`spec/1 §Inference Models`).
    #[must_use]
    pub fn of_source(&self, source: InferenceSource) -> Self {
        let is_wanted = |model: &&Model| match source {
            InferenceSource::Worker => model.provider.upstream.is_on_this_machine(),
            InferenceSource::ApiEgress => !model.provider.upstream.is_on_this_machine(),
        };
        self.iter().filter(is_wanted).cloned().collect()
    }

    fn unknown(&self, name: &str) -> UnknownModel {
        let known = self.names().into_iter().map(str::to_owned).collect();
        UnknownModel { name: name.to_owned(), known }
    }

    /// Checks that every provider of these has the credential that its configuration names. A credential by a command is asked for,
    /// and waited for.
    ///
    /// # Errors
    /// [`NoCredentialError`] for the first provider that has none.
    pub fn check_credentials(&self) -> Result<(), NoCredentialError> {
        for provider in self.providers() {
            let checked = provider.credential.as_ref().map_or(Ok(()), |credential| credential.check());
            checked.map_err(|source| NoCredentialError { provider: provider.name.clone(), source })?;
        }
        Ok(())
    }

    /// Whoever answers for one of them.
    pub fn providers(&self) -> Vec<&Arc<Provider>> {
        self.0.values().map(|model| &model.provider).collect()
    }

    /// The names of those whose provider understands calls of that dialect.
    pub(crate) fn names_on(&self, surface: Surface) -> impl Iterator<Item = &str> {
        let speaks = move |model: &&Model| model.provider.kind.speaks(surface);
        self.0.values().filter(speaks).map(|model| model.name.as_str())
    }

    /// Their names, as they are told to whoever asked for another one.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

impl FromIterator<Model> for Models {
    fn from_iter<I: IntoIterator<Item = Model>>(models: I) -> Self {
        Self(models.into_iter().map(|model| (model.name.clone(), model)).collect())
    }
}
