//! Trace collector: from the configuration, or else from OpenTelemetry's own variables.

use crate::error::CliError;
use belljar_egress::upstream::Upstream;
use belljar_node::TraceSettings;
use belljar_node::daemon::TracesConfig;
use std::time::Duration;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Path for traces below an endpoint that isn't for traces alone.
const PATH: &str = "/v1/traces";

const TIMEOUT: Duration = Duration::from_secs(10);

/// As the configuration says.
pub(super) fn of_configuration(TracesConfig { endpoint, timeout }: TracesConfig) -> TraceSettings {
    TraceSettings { collector: endpoint, path: PATH.to_owned(), headers: Vec::new(), timeout }
}

/// Adds settings from the variables: the endpoint if the configuration names none, and headers.
pub(super) fn of_environment(configured: Option<TraceSettings>) -> Result<Option<TraceSettings>, CliError> {
    let settings = match configured {
        Some(settings) => Some(settings),
        None => named_by_variables()?,
    };
    let Some(settings) = settings else { return Ok(None) };
    let headers = headers(variable(HEADERS).unwrap_or_default().as_str())?;
    let collector = match headers.is_empty() {
        true => settings.collector.without_credential(),
        false => settings.collector,
    };
    Ok(Some(TraceSettings { collector, headers, ..settings }))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn named_by_variables() -> Result<Option<TraceSettings>, CliError> {
    let (name, url, path) = match (variable(TRACES_ENDPOINT), variable(ENDPOINT)) {
        (Some(url), _) => (TRACES_ENDPOINT, url, ""),
        (None, Some(url)) => (ENDPOINT, url, PATH),
        (None, None) => return Ok(None),
    };
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    let collector = Upstream::parse(&url).map_err(|error| CliError::usage(format!("{name}: {error}")))?;
    if !is_http {
        return Err(CliError::usage(format!("{name}: {url:?} is no URL of http or https")));
    }
    Ok(Some(TraceSettings { collector, path: path.to_owned(), headers: Vec::new(), timeout: TIMEOUT }))
}

/// `name=value,name=value`.
fn headers(text: &str) -> Result<Vec<(String, String)>, CliError> {
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
    let read = pairs.map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim().to_ascii_lowercase(), unescaped(value.trim())?);
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let is_value = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let is_ours =
            ["host", "content-length", "content-type", "transfer-encoding"].contains(&name.as_str());
        (is_name && is_value && !is_ours).then_some((name, value))
    });
    read.collect::<Option<_>>().ok_or_else(|| {
        // The text itself holds secrets.
        CliError::usage(format!("{HEADERS}: expected name=value,name=value"))
    })
}

/// With what stands behind a percent sign as what it means.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        match (first, others) {
            (b'%', [high, low, behind @ ..]) => {
                let digits = [*high, *low];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
                rest = behind;
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_headers_are_parsed_in_opentelemetry_format() {
        let read = headers("authorization=Bearer%20x, x-team=a").unwrap();
        let expected = [("authorization", "Bearer x"), ("x-team", "a")];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(headers("").unwrap(), []);
        for bad in ["a", "=b", "a b=c", "a=%0d%0ahost: b", "a=%x", "host=b", "a=%"] {
            assert!(headers(bad).is_err(), "{bad}");
        }
    }
}
