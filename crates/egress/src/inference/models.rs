//! Models that a run may use, and their providers.

use crate::credential::{Credential, CredentialError};
use crate::upstream::Upstream;
use belljar_contract::job::context::InferenceSource;
use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_contract::inference::ApiDialect;
pub use belljar_contract::inference::ProviderKind;

/// Provider that answers calls.
pub struct Provider {
    /// Name in the configuration.
    pub name: String,
    /// Kind of provider.
    pub kind: ProviderKind,
    /// Address of the provider.
    pub upstream: Upstream,
    /// Credential that the provider requires.
    pub credential: Option<Arc<Credential>>,
}

/// Model, by the name that runs use.
#[derive(Clone)]
pub struct Model {
    /// Name that runs use.
    pub name: String,
    /// Name that the provider uses.
    pub upstream_name: String,
    /// Provider of the model.
    pub provider: Arc<Provider>,
    /// Price that the configuration states.
    pub stated_price: Option<Price>,
}

/// Maximum price of a model's tokens, in billionths of a dollar each, which is thousandths of a dollar per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Price of an input token.
    pub input: u64,
    /// Price of an output token.
    pub output: u64,
}

/// Models that one run may use, by name.
#[derive(Clone, Default)]
pub struct Models(BTreeMap<String, Model>);

/// There is no model of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no model {name:?}")]
pub struct UnknownModel {
    /// Name that was requested.
    pub name: String,
    /// Names of the models that there are.
    pub known: Vec<String>,
}

/// A provider's credential can't be used. The text is for the operator of the host.
#[derive(Debug, thiserror::Error)]
#[error("the credential of the provider {provider:?} can't be used")]
pub struct NoCredentialError {
    /// Name of the provider in the configuration.
    pub provider: String,
    /// Reason.
    #[source]
    pub source: CredentialError,
}

// === impl Model ===

impl Model {
    /// Returns the price, if it is known. Ollama charges nothing unless a price is stated.
    pub(crate) fn price(&self) -> Option<Price> {
        let of_kind = (self.provider.kind == ProviderKind::Ollama).then_some(Price::FREE);
        self.stated_price.or(of_kind)
    }
}

// === impl Price ===

impl Price {
    /// Price of models that cost nothing.
    pub(crate) const FREE: Self = Self { input: 0, output: 0 };

    /// Returns the cost of these numbers of tokens, in billionths of a dollar.
    pub(crate) fn nano_dollars(self, input: u64, output: u64) -> u64 {
        self.input.saturating_mul(input).saturating_add(self.output.saturating_mul(output))
    }

    /// Returns the cost of these numbers of tokens, in millionths of a dollar, rounded up.
    pub(crate) fn micro_dollars(self, input: u64, output: u64) -> u64 {
        self.nano_dollars(input, output).div_ceil(1_000)
    }
}

// === impl Models ===

impl Models {
    /// Returns all models, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.0.values()
    }

    /// Returns the model of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Model> {
        self.0.get(name)
    }

    /// Returns only the models of these names.
    ///
    /// # Errors
    /// [`UnknownModel`], for the first name that doesn't exist.
    pub fn only(&self, names: &[String]) -> Result<Self, UnknownModel> {
        let find = |name: &String| self.get(name).cloned().ok_or_else(|| self.unknown(name));
        names.iter().map(find).collect()
    }

    /// Returns the models of that source: `worker` means providers on this machine, `api_egress` all others
    /// (`docs/contracts/job.md#j8.3`).
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

    /// Checks that each provider has the credential that its configuration names. A credential command is run, and its result
    /// awaited.
    ///
    /// # Errors
    /// [`NoCredentialError`], for the first provider without its credential.
    pub fn check_credentials(&self) -> Result<(), NoCredentialError> {
        for provider in self.providers() {
            let checked = provider.credential.as_ref().map_or(Ok(()), |credential| credential.check());
            checked.map_err(|source| NoCredentialError { provider: provider.name.clone(), source })?;
        }
        Ok(())
    }

    /// Returns the provider of each model.
    pub fn providers(&self) -> Vec<&Arc<Provider>> {
        self.0.values().map(|model| &model.provider).collect()
    }

    /// Returns the names of the models whose provider understands calls of that dialect.
    pub(crate) fn names_on(&self, surface: ApiDialect) -> impl Iterator<Item = &str> {
        let speaks = move |model: &&Model| model.provider.kind.speaks(surface);
        self.0.values().filter(speaks).map(|model| model.name.as_str())
    }

    /// Returns the names, as a client sees them that requested an unknown model.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

impl FromIterator<Model> for Models {
    fn from_iter<I: IntoIterator<Item = Model>>(models: I) -> Self {
        Self(models.into_iter().map(|model| (model.name.clone(), model)).collect())
    }
}
