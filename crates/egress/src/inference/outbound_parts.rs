//! Finds parts of a request that would have the provider reach out to other hosts for the sandbox.
//!
//! A provider that fetches a URL sends out whatever the URL contains. Tools that the provider runs, image URLs and tool servers
//! would each be a route that the host has not allowed. Content stored with the provider is refused, too: other users of the
//! account may have stored it.

mod content;
mod items;
mod tools;

pub(super) use self::tools::is_dated;

use super::members::Members;
use super::refusal::Refusal;
use super::route::Operation;
use belljar_contract::inference::{ApiDialect, Excerpt};

const REACHES_OUT: &str = "it would make the provider contact other systems, past the host";
const STORED: &str = "it refers to data stored at the provider, which other runs share";

/// Members that no call may have.
const REFUSED: &[(&str, &str)] = &[
    ("mcp_servers", REACHES_OUT),
    ("web_search_options", REACHES_OUT),
    ("container", STORED),
    ("conversation", STORED),
    ("previous_response_id", STORED),
    ("prompt_id", STORED),
    ("assistant_id", STORED),
    ("thread_id", STORED),
    ("context_management_id", STORED),
    ("background", "it would continue after the call has ended"),
];

/// Checks the body of a request.
pub(crate) fn check(members: &Members<'_>, surface: ApiDialect, operation: Operation) -> Result<(), Refusal> {
    if surface == ApiDialect::Ollama {
        // Its format reaches nothing: images are inline, and the client runs the tools.
        return Ok(());
    }
    for (name, why) in REFUSED {
        let is_set = members.get(name).is_some_and(|value| !matches!(value, "null" | "false" | "[]"));
        if is_set {
            return Err(Refusal::Forbidden { member: Excerpt::of(name), why });
        }
    }
    // In a plain completion, `prompt` is the text.
    if operation == Operation::Responses && members.get("prompt").is_some_and(|prompt| prompt != "null") {
        return Err(Refusal::Forbidden { member: Excerpt::of("prompt"), why: STORED });
    }
    if let Some(tools) = members.get("tools") {
        tools::check(tools::TOOLS, tools)?;
    }
    if let Some(choice) = members.get("tool_choice") {
        tools::check_choice(choice)?;
    }
    if operation == Operation::Responses
        && let Some(input) = members.get("input")
    {
        items::check(input)?;
    }
    if operation == Operation::Embedding {
        return members.get("input").map_or(Ok(()), |input| content::check_embedded("input", input));
    }
    ["messages", "input", "system", "instructions", "prediction"]
        .iter()
        .filter_map(|name| Some((*name, members.get(name)?)))
        .try_for_each(|(name, text)| content::check(name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, surface: ApiDialect) -> Result<(), String> {
        let operation = if body.contains("\"input\"") { Operation::Responses } else { Operation::Completion };
        let members = Members::parse(body.as_bytes()).unwrap();
        super::check(&members, surface, operation).map_err(|refusal| match refusal {
            Refusal::Forbidden { member, .. } => member.into(),
            other => other.code().to_owned(),
        })
    }

    #[test]
    fn request_that_makes_the_provider_fetch_is_refused_with_the_json_path() {
        for (body, member) in [
            (
                r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://a/?q=secret"}}]}]}"#,
                "messages[0].content[0].image_url",
            ),
            (r#"{"messages":[{"content":[{"image_url":"http://a"}]}]}"#, "messages[0].content[0].image_url"),
            (
                r#"{"messages":[{"content":[{"image\u005furl":"http://a"}]}]}"#,
                "messages[0].content[0].image_url",
            ),
            (
                r#"{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://a"}}]}]}"#,
                "messages[0].content[0].source.url",
            ),
            (
                r#"{"input":[{"content":[{"type":"input_file","file_url":"https://a"}]}]}"#,
                "input[0].content[0].file_url",
            ),
            (
                r#"{"input":[{"content":[{"type":"input_file","file_id":"file-1"}]}]}"#,
                "input[0].content[0].file_id",
            ),
            (r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#, "input[0].type"),
            (r#"{"input":[{"type":"Item_Reference","id":"msg_1"}]}"#, "input[0].type"),
            (r#"{"input":[{"role":"user","content":"a"},{"id":"msg_1"}]}"#, "input[1].id"),
            (r#"{"input":[{"id":"msg_1","type":null}]}"#, "input[0].id"),
            (r#"{"input":[{"\u0069d":"msg_1"}]}"#, "input[0].id"),
            (r#"{"input":[{"id":"msg_1","content":"a"}]}"#, "input[0].id"),
            (r#"{"input":[{"type":"reasoning","id":"rs_1","summary":[]}]}"#, "input[0].id"),
            (r#"{"input":[{"type":"image_generation_call","id":"ig_1","result":null}]}"#, "input[0].type"),
            (
                r#"{"messages":[{"role":"assistant","content":"a","audio":{"id":"audio_1"}}]}"#,
                "messages[0].audio",
            ),
            (
                r#"{"messages":[{"content":[{"source":{"type":"URL","url":"https://a"}}]}]}"#,
                "messages[0].content[0].source.url",
            ),
            (
                r#"{"messages":[{"content":[{"input_audio":{"data":"https://a","format":"wav"}}]}]}"#,
                "messages[0].content[0].input_audio",
            ),
            (r#"{"input":"a","prompt":{"id":"pmpt_1"}}"#, "prompt"),
            (r#"{"input":"a","previous_response_id":"resp_1"}"#, "previous_response_id"),
            (r#"{"input":"a","background":true}"#, "background"),
            (r#"{"tools":[{"type":"function"},{"type":"web_search"}]}"#, "tools[1].type"),
            (r#"{"tools":[{"type":"mcp","server_url":"https://a"}]}"#, "tools[0].type"),
            (r#"{"tools":[{"type":"code_interpreter"}]}"#, "tools[0].type"),
            (r#"{"tools":[{"type":"web_fetch_20250910"}]}"#, "tools[0].type"),
            (r#"{"tools":[{"type":"bash_code_execution_20250825"}]}"#, "tools[0].type"),
            (r#"{"tools":[{"type":"computer_use_preview"}]}"#, "tools[0].type"),
            (r#"{"tools":[{"type":"bash_2025012"}]}"#, "tools[0].type"),
            (r#"{"tools":[{"type":"bash_20250124x"}]}"#, "tools[0].type"),
            (r#"{"tools":[{"type":["function"]}]}"#, "tools[0].type"),
            (r#"{"tools":{"type":"web_search"}}"#, "invalid_body"),
            (r#"{"mcp_servers":[{"url":"https://a"}]}"#, "mcp_servers"),
            (r#"{"web_search_options":{}}"#, "web_search_options"),
        ] {
            for surface in [ApiDialect::Openai, ApiDialect::Anthropic] {
                assert_eq!(check(body, surface), Err(member.to_owned()), "{body}");
            }
        }
    }

    #[test]
    fn provider_side_tools_and_items_are_refused_at_any_json_path() {
        for (body, member) in [
            (r#"{"input":[{"type":"mcp_list_tools","server_label":"x","tools":[]}]}"#, "input[0].type"),
            (
                r#"{"input":[{"role":"user"},{"type":"mcp_approval_response","approve":true}]}"#,
                "input[1].type",
            ),
            (r#"{"input":[{"type":"compaction_trigger"}]}"#, "input[0].type"),
            (r#"{"input":[{"Type":"web_search_call","type":"message"}]}"#, "input[0].type"),
            (r#"{"input":[{"type":["message"]}]}"#, "input[0].type"),
            (
                r#"{"input":[{"type":"additional_tools","tools":[{"type":"custom"},{"type":"web_search"}]}]}"#,
                "input[0].tools[1].type",
            ),
            (
                r#"{"input":[{"type":"tool_search_output","tools":[{"type":"code_interpreter"}]}]}"#,
                "input[0].tools[0].type",
            ),
            (r#"{"input":[{"role":"user","\u0074ools":[{"type":"mcp"}]}]}"#, "input[0].tools[0].type"),
            (
                r#"{"messages":[{"role":"system","Tools":[{"type":"web_search"}]}]}"#,
                "messages[0].Tools[0].type",
            ),
            (
                r#"{"messages":[{"content":[{"x":{"tools":[{"type":"web_search"}]}}]}]}"#,
                "messages[0].content[0].x.tools[0].type",
            ),
            (
                r#"{"tools":[{"type":"namespace","name":"x","tools":[{"type":"web_search"}]}]}"#,
                "tools[0].tools[0].type",
            ),
            (r#"{"tools":[{"type":"function","tools":[]}]}"#, "tools[0].tools"),
            (r#"{"tools":[{"type":"tool_search"}]}"#, "tools[0].execution"),
            (r#"{"tools":[{"type":"tool_search","execution":"server"}]}"#, "tools[0].execution"),
            (r#"{"tool_choice":{"type":"web_search_preview"}}"#, "tool_choice.type"),
            (
                r#"{"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"web_search"}]}}"#,
                "tool_choice.tools[0].type",
            ),
            (
                r#"{"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[{"type":"mcp"}]}}}"#,
                "tool_choice.allowed_tools.tools[0].type",
            ),
            (r#"{"tool_choice":{"type":"function","server_label":"x"}}"#, "tool_choice.server_label"),
        ] {
            for surface in [ApiDialect::Openai, ApiDialect::Anthropic] {
                assert_eq!(check(body, surface), Err(member.to_owned()), "{body}");
            }
        }
    }

    #[test]
    fn usual_agent_requests_are_not_refused() {
        for body in [
            r#"{"messages":[{"content":"see https://example.org and \"image_url\": \"http://a\""}]}"#,
            r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}]}"#,
            r#"{"messages":[{"content":[{"type":"tool_use","input":{"url":"https://a","image_url":"http://b"}}]}]}"#,
            r#"{"messages":[{"tool_calls":[{"function":{"arguments":"{\"url\":\"http://a\"}"},"id":"call_1"}]}]}"#,
            r#"{"messages":[{"tool_call_id":"call_1","content":"\u00e4"}]}"#,
            r#"{"input":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text"}]}]}"#,
            r#"{"input":[{"type":"function_call","id":"fc_1","call_id":"call_1","arguments":"{}"}]}"#,
            r#"{"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"AA"}]}"#,
            r#"{"input":[{"type":"function_call_output","call_id":"call_1","output":"{\"id\":1}"}]}"#,
            r#"{"messages":[{"content":[{"input_audio":{"data":"AA","format":"wav"}}]}]}"#,
            r#"{"tools":[{"type":"function","function":{"parameters":{"properties":{"url":{"type":"string"}}}}}]}"#,
            r#"{"tools":[{"name":"Bash","input_schema":{}},{"type":"bash_20250124"},{"type":"text_editor_20250728"},{"type":"custom"}]}"#,
            r#"{"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"x","tools":[{"type":"function","name":"a"},{"type":"custom","name":"b"}]},{"type":"tool_search","execution":"client","description":"a","parameters":{}}]}]}"#,
            r#"{"input":[{"type":"tool_search_call","call_id":"c","execution":"client","arguments":{"tools":[{"type":"web_search"}]}},{"type":"tool_search_output","call_id":"c","tools":[]}]}"#,
            r#"{"input":[{"type":"custom_tool_call","input":"\"tools\": [{\"type\": \"web_search\"}]","call_id":"c"},{"role":"user","content":"tools"}]}"#,
            r#"{"input":"a text"}"#,
            r#"{"tool_choice":"auto"}"#,
            r#"{"tool_choice":{"type":"tool","name":"Bash","disable_parallel_tool_use":true}}"#,
            r#"{"tool_choice":{"type":"function","function":{"name":"a"}}}"#,
            r#"{"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"a"}]}}"#,
            r#"{"tools":null,"mcp_servers":[],"background":false,"previous_response_id":null}"#,
            r#"{"prompt":"a plain text"}"#,
        ] {
            assert_eq!(check(body, ApiDialect::Openai), Ok(()), "{body}");
        }
    }
}
