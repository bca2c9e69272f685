//! Total usage of model calls, as text for the user.

use belljar_contract::usage::UsageTotals;
use std::fmt::Write as _;

/// The number of calls.
pub(crate) fn calls(totals: &UsageTotals) -> String {
    let plural = if totals.calls == 1 { "" } else { "s" };
    format!("{} call{plural}", totals.calls)
}

/// A number of tokens, or that it is unknown.
pub(crate) fn tokens(tokens: Option<u64>) -> String {
    tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string())
}

/// The sum of costs in US dollars, or that it is unknown.
pub(crate) fn cost(totals: &UsageTotals) -> String {
    totals.cost_usd.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string)
}

/// Calls, tokens and cost, and of how many calls which of these is unknown.
pub(crate) fn summary(totals: &UsageTotals) -> String {
    format!("{}, {}", calls(totals), amounts(totals))
}

/// Tokens and cost, and of how many calls which of these is unknown.
pub(crate) fn amounts(totals: &UsageTotals) -> String {
    let (input, output) = (tokens(totals.input_tokens), tokens(totals.output_tokens));
    let mut text = format!("{input} + {output} tokens, {} USD", cost(totals));
    let unknown = [
        (totals.uncounted_calls, "; the tokens of {} are not known"),
        (totals.degraded_calls, "; the cost of {} is not known"),
        (totals.unended_calls, "; of {} more no end is recorded"),
    ];
    for (calls, said) in unknown.into_iter().filter(|(calls, _)| *calls > 0) {
        // Writing to a String can't fail.
        let _ = write!(text, "{}", said.replace("{}", &calls.to_string()));
    }
    text
}
