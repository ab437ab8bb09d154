//! Serializes the body of an enum value without the tag around it.

use std::fmt::Display;

use serde::ser::{
    Error, Impossible, Serialize, SerializeMap, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleVariant, Serializer,
};

/// The body of a value that serde writes as an enum variant; an error for any other.
pub(super) struct Body<'a, E>(pub(super) &'a E);

impl<E: Serialize> Serialize for Body<'_, E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Untagged(serializer))
    }
}

/// Takes a variant, and hands what is in it to a serializer.
struct Untagged<S>(S);

/// The fields of a variant, on their way to the serializer of a plain struct or tuple.
struct Fields<T>(T);

fn no_variant<T, E: Error>(what: impl Display) -> Result<T, E> {
    Err(E::custom(format_args!("{what} is no variant")))
}

macro_rules! no_variants {
    ($($method:ident($($value:ty)?)),*) => {$(
        fn $method(self $(, _: $value)?) -> Result<S::Ok, S::Error> {
            no_variant(stringify!($method))
        }
    )*};
}

impl<S: Serializer> Serializer for Untagged<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Impossible<S::Ok, S::Error>;
    type SerializeTuple = Impossible<S::Ok, S::Error>;
    type SerializeTupleStruct = Impossible<S::Ok, S::Error>;
    type SerializeTupleVariant = Fields<S::SerializeTuple>;
    type SerializeMap = Impossible<S::Ok, S::Error>;
    type SerializeStruct = Impossible<S::Ok, S::Error>;
    type SerializeStructVariant = Fields<S::SerializeStruct>;

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_map(Some(0))?.end()
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        value.serialize(self.0)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.0.serialize_tuple(len).map(Fields)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.0.serialize_struct(variant, len).map(Fields)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }

    no_variants!(
        serialize_bool(bool),
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_i128(i128),
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_u64(u64),
        serialize_u128(u128),
        serialize_f32(f32),
        serialize_f64(f64),
        serialize_char(char),
        serialize_str(&str),
        serialize_bytes(&[u8]),
        serialize_none(),
        serialize_unit(),
        serialize_unit_struct(&'static str)
    );

    fn serialize_some<T: ?Sized + Serialize>(self, _value: &T) -> Result<S::Ok, S::Error> {
        no_variant("an option")
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        _value: &T,
    ) -> Result<S::Ok, S::Error> {
        no_variant(name)
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        no_variant("a sequence")
    }

    fn serialize_tuple(self, _len: usize) -> Result<Self::SerializeTuple, S::Error> {
        no_variant("a tuple")
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        no_variant(name)
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        no_variant("a map")
    }

    fn serialize_struct(
        self,
        name: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        no_variant(name)
    }
}

impl<T: SerializeTuple> SerializeTupleVariant for Fields<T> {
    type Ok = T::Ok;
    type Error = T::Error;

    fn serialize_field<V: ?Sized + Serialize>(&mut self, value: &V) -> Result<(), T::Error> {
        self.0.serialize_element(value)
    }

    fn end(self) -> Result<T::Ok, T::Error> {
        self.0.end()
    }
}

impl<T: SerializeStruct> SerializeStructVariant for Fields<T> {
    type Ok = T::Ok;
    type Error = T::Error;

    fn serialize_field<V: ?Sized + Serialize>(
        &mut self,
        key: &'static str,
        value: &V,
    ) -> Result<(), T::Error> {
        self.0.serialize_field(key, value)
    }

    fn skip_field(&mut self, key: &'static str) -> Result<(), T::Error> {
        self.0.skip_field(key)
    }

    fn end(self) -> Result<T::Ok, T::Error> {
        self.0.end()
    }
}
