use proc_macro::TokenStream;
#[proc_macro_derive(Aggregate, attributes(aggregate))]
pub fn aggregate(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
#[proc_macro_derive(Command, attributes(command))]
pub fn command(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
#[proc_macro_derive(Event, attributes(event))]
pub fn event(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
