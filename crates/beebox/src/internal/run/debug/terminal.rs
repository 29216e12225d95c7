//! stub
pub struct Terminal;
pub fn interact() {}
