//! Scripts: the test decides which request gets which answer.

use super::answer::{Answer, ToolCall};
use super::request::Request;
use std::collections::VecDeque;
use std::fmt;

/// Finds the answer to a request. Without one, the server answers by itself: lists of models, vectors, counts; and an
/// error for requests that generate text.
pub struct Script(Box<FindAnswer>);

type FindAnswer = dyn FnMut(&Request) -> Option<Answer> + Send;

// === impl Script ===

impl Script {
    /// Answers with what `find` returns. It is called for every request, also for the list of models.
    pub fn from_fn(find: impl FnMut(&Request) -> Option<Answer> + Send + 'static) -> Self {
        Self(Box::new(find))
    }

    /// Gives the same answer to every request that generates text.
    pub fn always(answer: Answer) -> Self {
        Self::from_fn(move |request| request.operation().generates().then(|| answer.clone()))
    }

    /// Gives one answer after the other to requests that generate text; an error when there are no more.
    pub fn queue(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut answers: VecDeque<Answer> = answers.into_iter().collect();
        Self::from_fn(move |request| match request.operation().generates() {
            true => answers.pop_front(),
            false => None,
        })
    }

    /// Acts like a model that works with tools: it makes one call after the other, each when the previous one was
    /// answered, and then reports that it is done. A client that offers no such tool gets that report at once: agents
    /// also ask for a title, or whether the topic has changed.
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
