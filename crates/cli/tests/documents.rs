//! The README and the pages of docs/ show what the command prints.

#[oracle::test]
fn pages_show_what_the_command_prints() {
    command_tests::documents::check_pages(crate::support::BEEBOX);
}
