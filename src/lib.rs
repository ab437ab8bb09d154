pub mod admin;
pub mod http;
