//! `operations` of a connection: the only calls that agents may make of it.
//!
//! ```yaml
//! operations:
//!   - name: list_issues
//!     method: GET
//!     path: /projects/{project}/issues    # a name in braces is a parameter of the call
//! ```
//! The other parameters become the query of a `GET`, `HEAD`, `OPTIONS` or `DELETE` call, and the JSON body of any other.

use super::call::ApiCall;
use crate::web::encoded;
use belljar_contract::yaml::{Members, MistakeLog, Node, text};
use belljar_policy::egress::is_credential_name;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Operation that agents may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Name of the operation.
    pub name: String,
    pub(super) method: String,
    parts: Vec<PathPart>,
}

/// Part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathPart {
    Text(String),
    Parameter(String),
}

/// Reason why parameters don't fit an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidParametersError {
    /// A parameter of the path is missing, or is neither a text, a number nor a boolean.
    #[error("the parameter {name:?} is needed: a text, a number, true or false")]
    Missing {
        /// Name of the parameter.
        name: String,
    },
    /// A parameter would change the structure of the path.
    #[error("the parameter {name:?} can't be part of a path")]
    NotOfPath {
        /// Name of the parameter.
        name: String,
    },
    /// A parameter is neither a text, a number, a boolean nor a list of these.
    #[error(
        "the parameter {name:?} can't be part of a query: it is a text, a number, true, false, or a list of these"
    )]
    NotOfQuery {
        /// Name of the parameter.
        name: String,
    },
}

/// Methods whose parameters become the query.
const BY_QUERY: [&str; 4] = ["GET", "HEAD", "OPTIONS", "DELETE"];

// === impl Operation ===

impl Operation {
    pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Option<Self> {
        let mut members = Members::open(node, log)?;
        let name = members.required("name", |node, log| {
            text(node, log, belljar_policy::egress::CREDENTIAL_NAME, |text| {
                is_credential_name(text).then(|| text.to_owned())
            })
        });
        let method = members.required("method", super::config::method);
        let parts = members.required("path", |node, log| {
            text(node, log, "a path that begins with a slash, with parameters as {NAME}", parts)
        });
        members.finish();
        Some(Self { name: name?, method: method?, parts: parts? })
    }

    /// Names of the parameters in the path.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            PathPart::Parameter(name) => Some(name.as_str()),
            PathPart::Text(_) => None,
        })
    }

    /// Returns an example of the path.
    pub(super) fn example(&self) -> String {
        let shown = |part: &PathPart| match part {
            PathPart::Text(text) => text.clone(),
            PathPart::Parameter(_) => "x".to_owned(),
        };
        self.parts.iter().map(shown).collect()
    }

    /// Returns the call with these parameters, not yet approved.
    ///
    /// # Errors
    /// [`InvalidParametersError`].
    pub fn call(&self, mut parameters: Map<String, Value>) -> Result<ApiCall, InvalidParametersError> {
        let mut path = String::new();
        for part in &self.parts {
            match part {
                PathPart::Text(text) => path.push_str(text),
                PathPart::Parameter(name) => {
                    let value = parameters.get(name).and_then(plain);
                    let value =
                        value.ok_or_else(|| InvalidParametersError::Missing { name: name.clone() })?;
                    if value.is_empty() || value.bytes().all(|byte| byte == b'.') {
                        return Err(InvalidParametersError::NotOfPath { name: name.clone() });
                    }
                    path.push_str(&encoded(value.as_bytes(), b""));
                }
            }
        }
        let of_path: Vec<String> = self.parameters().map(str::to_owned).collect();
        of_path.iter().for_each(|name| drop(parameters.remove(name)));
        let mut call = ApiCall {
            method: self.method.clone(),
            path,
            query: None,
            headers: vec![("accept".to_owned(), "application/json, text/*;q=0.5".to_owned())],
            body: Vec::new(),
            is_approved: false,
        };
        if BY_QUERY.contains(&self.method.as_str()) {
            call.query = query(&parameters)?;
        } else {
            call.headers.push(("content-type".to_owned(), "application/json".to_owned()));
            call.body = Value::Object(parameters).to_string().into_bytes();
        }
        Ok(call)
    }
}

/// Returns the query of these parameters; `None` if there are none.
fn query(parameters: &Map<String, Value>) -> Result<Option<String>, InvalidParametersError> {
    let mut query = String::new();
    for (name, value) in parameters {
        let values =
            value.as_array().map_or_else(|| vec![plain(value)], |all| all.iter().map(plain).collect());
        for value in values {
            let value = value.ok_or_else(|| InvalidParametersError::NotOfQuery { name: name.clone() })?;
            let mark = if query.is_empty() { "" } else { "&" };
            // Writing to a `String` can't fail.
            let _ =
                write!(query, "{mark}{}={}", encoded(name.as_bytes(), b""), encoded(value.as_bytes(), b""));
        }
    }
    Ok((!query.is_empty()).then_some(query))
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_so) => Some(is_so.to_string()),
        _ => None,
    }
}

fn parts(text: &str) -> Option<Vec<PathPart>> {
    let is_graphic = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\".contains(&byte));
    if !text.starts_with('/') || !is_graphic {
        return None;
    }
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, more) = behind.split_once('}')?;
        if !is_credential_name(name) || before.contains('}') {
            return None;
        }
        all.extend([PathPart::Text(before.to_owned()), PathPart::Parameter(name.to_owned())]);
        rest = more;
    }
    all.push(PathPart::Text(rest.to_owned()));
    (!rest.contains('}')).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn operation(method: &str, path: &str) -> Operation {
        Operation { name: "x".to_owned(), method: method.to_owned(), parts: parts(path).unwrap() }
    }

    fn call(method: &str, parameters: &Value) -> Result<ApiCall, InvalidParametersError> {
        operation(method, "/p/{project}/issues").call(parameters.as_object().unwrap().clone())
    }

    #[test]
    fn parameters_fill_the_path_and_the_others_are_query_or_body() {
        let read =
            call("GET", &json!({ "project": "a b/../c?d", "page": 2, "label": ["x&y", true] })).unwrap();
        assert_eq!(read.path, "/p/a%20b%2F..%2Fc%3Fd/issues");
        assert_eq!(read.query.as_deref(), Some("label=x%26y&label=true&page=2"));
        let written = call("POST", &json!({ "project": 7, "title": "é", "more": { "a": [1] } })).unwrap();
        assert_eq!((written.path.as_str(), written.query, written.is_approved), ("/p/7/issues", None, false));
        let body: Value = serde_json::from_slice(&written.body).unwrap();
        assert_eq!(body, json!({ "title": "é", "more": { "a": [1] } }));
    }

    #[test]
    fn parameters_that_change_the_path_or_fit_no_query_are_rejected() {
        for project in [json!(".."), json!("."), json!("")] {
            let error = call("GET", &json!({ "project": project })).unwrap_err();
            assert!(matches!(error, InvalidParametersError::NotOfPath { .. }), "{error}");
        }
        for project in [json!(null), json!({}), json!(["a"])] {
            let error = call("GET", &json!({ "project": project })).unwrap_err();
            assert!(matches!(error, InvalidParametersError::Missing { .. }), "{error}");
        }
        assert!(call("GET", &json!({ "project": "a", "filter": { "a": 1 } })).is_err());
        assert!(call("POST", &json!({ "project": "a", "filter": { "a": 1 } })).is_ok());
        for bad in ["p", "/p/{", "/p/}", "/p/{a b}", "/p?x={y}", "/p/{}", "/p\\x"] {
            assert_eq!(parts(bad), None, "{bad}");
        }
    }
}
