//! What the server answers to which request: as the test says.

use super::answer::{Answer, ToolCall};
use super::request::Request;
use std::collections::VecDeque;
use std::fmt;

/// Finds the answer to a request. Where it has none, the server gives its own: lists of models, vectors, counts; and an
/// error where a model would have to think.
pub struct Script(Box<Find>);

type Find = dyn FnMut(&Request) -> Option<Answer> + Send;

// === impl Script ===

impl Script {
    /// Whatever this finds. It is asked about every request, also about one for the list of models.
    pub fn from_fn(find: impl FnMut(&Request) -> Option<Answer> + Send + 'static) -> Self {
        Self(Box::new(find))
    }

    /// The same whenever a model would have to think.
    pub fn always(answer: Answer) -> Self {
        Self::from_fn(move |request| request.operation().generates().then(|| answer.clone()))
    }

    /// One after the other whenever a model would have to think; an error when there are no more.
    pub fn queue(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut answers: VecDeque<Answer> = answers.into_iter().collect();
        Self::from_fn(move |request| match request.operation().generates() {
            true => answers.pop_front(),
            false => None,
        })
    }

    /// What a model does that works with tools: calls one after the other, each when the one before it has answered,
    /// and tells at the end that it is done. Whoever offers no such tool is told the same, at once: agents ask besides
    /// for a title, or whether the topic has changed.
    pub fn working(calls: Vec<ToolCall>, done: &str) -> Self {
        let done = done.to_owned();
        Self::from_fn(move |request| {
            let offered = request.offered_tools();
            let next = calls.get(request.tool_results().len()).filter(|call| offered.contains(&call.name));
            let answer = || next.map_or_else(|| Answer::text(&done), |call| Answer::tool(call.clone()));
            request.operation().generates().then(answer)
        })
    }

    pub(super) fn answer(&mut self, request: &Request) -> Option<Answer> {
        (self.0)(request)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}
