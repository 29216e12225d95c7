//! `#[oracle::test]`: registers a test for the harness of the crate `oracle`.
#![forbid(unsafe_code)]

use proc_macro::{Delimiter, TokenStream, TokenTree};

/// Registers a function without arguments as a test, by its path. `#[ignore = "reason"]`
/// behind it has the meaning that it has for `#[test]`.
#[proc_macro_attribute]
pub fn test(_: TokenStream, item: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    let (mut name, mut is_ignored) = (None, false);
    let mut tokens = item.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if let (TokenTree::Punct(hash), Some(TokenTree::Group(group))) = (&token, tokens.peek())
            && hash.as_char() == '#'
            && group.delimiter() == Delimiter::Bracket
            && group.stream().to_string().starts_with("ignore")
        {
            is_ignored = true;
            tokens.next();
            continue;
        }
        let is_fn = matches!(kept.last(), Some(TokenTree::Ident(word)) if word.to_string() == "fn");
        if let (None, true, TokenTree::Ident(word)) = (&name, is_fn, &token) {
            name = Some(word.to_string());
        }
        kept.push(token);
    }
    let Some(name) = name else {
        return "compile_error!(\"a test is a function\");"
            .parse()
            .unwrap_or_default();
    };
    let registration = format!(
        "::oracle::inventory::submit! {{ ::oracle::Test {{
            path: concat!(module_path!(), \"::{name}\"), is_ignored: {is_ignored}, run: {name},
        }} }}"
    );
    let mut output: TokenStream = kept.into_iter().collect();
    output.extend(registration.parse::<TokenStream>().unwrap_or_default());
    output
}
