//! Checks that no function takes more than five values, each member of a tuple counted: clippy counts a tuple as one.

use super::{Finding, Repository};
use syn::{FnArg, ImplItem, Item, Signature, TraitItem, Type};

/// Maximum number of values, besides the receiver.
const MOST: usize = 5;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.rust_files() {
        // A file that can't be parsed doesn't compile either.
        let Ok(parsed) = syn::parse_file(&file.text) else { continue };
        let mut signatures = Vec::new();
        collect(&parsed.items, &mut signatures);
        for signature in signatures {
            let values = signature.inputs.iter().map(values_of).sum::<usize>();
            if values > MOST {
                let line = signature.ident.span().start().line;
                let found = format!("{} takes {values} values", signature.ident);
                findings.push(file.finding(line, &found, "at most 5, tuple members counted: use a struct"));
            }
        }
    }
    findings
}

fn collect<'s>(items: &'s [Item], signatures: &mut Vec<&'s Signature>) {
    for item in items {
        match item {
            Item::Fn(function) => signatures.push(&function.sig),
            Item::Impl(implementation) => {
                // The signatures of a trait of another crate are that crate's.
                signatures.extend(implementation.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(function) if implementation.trait_.is_none() => Some(&function.sig),
                    _ => None,
                }));
            }
            Item::Trait(declared) => {
                signatures.extend(declared.items.iter().filter_map(|item| match item {
                    TraitItem::Fn(function) => Some(&function.sig),
                    _ => None,
                }));
            }
            Item::Mod(module) => {
                collect(module.content.as_ref().map_or(&[], |(_, items)| items), signatures);
            }
            _ => {}
        }
    }
}

fn values_of(argument: &FnArg) -> usize {
    match argument {
        FnArg::Receiver(_) => 0,
        FnArg::Typed(typed) => members_of(&typed.ty),
    }
}

fn members_of(of: &Type) -> usize {
    match of {
        Type::Tuple(tuple) if !tuple.elems.is_empty() => tuple.elems.iter().map(members_of).sum(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_with_more_than_five_values_is_found_also_if_they_are_in_tuples() {
        let bad = "struct A;\nimpl A {\n    fn f(&self, (a, b): (u8, (u8, u8)), c: [(u8, u8); 2], d: u8, e: u8) {}\n}\n";
        let good = "fn f((a, b): (u8, u8), c: &(u8, u8), d: u8, e: u8) {}\n";
        let findings = check(&Repository::of(&[("bad.rs", bad), ("good.rs", good)]));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [3]);
    }
}
