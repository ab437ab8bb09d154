//! Writes JSON, and refuses the numbers that it can't hold.
//!
//! serde writes a float that is no number, or infinite, as `null`: the log would take a fact
//! that can't be read back, and nobody would be told. Such a value is refused here.

use std::fmt::{self, Display};

use serde::Serialize;
use serde::ser::{
    self, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// The value as JSON text.
///
/// # Errors
/// What serde says of a value that JSON can't hold, a float that is no finite number among them.
pub(crate) fn write<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    // Every such float is written as this word, so most values need no second look.
    if text.contains("null") {
        check(value)?;
    }
    Ok(text)
}

/// Whether JSON can hold every float of the value.
///
/// # Errors
/// What is wrong with the first that it can't hold.
pub(crate) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), serde_json::Error> {
    value
        .serialize(Look)
        .map_err(|Unfit(reason)| ser::Error::custom(reason))
}

/// Why a value doesn't fit.
#[derive(Debug)]
struct Unfit(String);

impl Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

impl ser::Error for Unfit {
    fn custom<T: Display>(reason: T) -> Self {
        Self(reason.to_string())
    }
}

/// Looks at every part of a value, and writes nothing.
struct Look;

impl Look {
    fn float(value: f64) -> Result<(), Unfit> {
        match value.is_finite() {
            true => Ok(()),
            false => Err(Unfit(format!("{value} is no number that JSON can hold"))),
        }
    }
}

macro_rules! fits {
    ($($method:ident($type:ty)),* $(,)?) => {$(
        fn $method(self, _value: $type) -> Result<(), Unfit> {
            Ok(())
        }
    )*};
}

impl Serializer for Look {
    type Ok = ();
    type Error = Unfit;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fits!(
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
        serialize_char(char),
        serialize_str(&str),
        serialize_bytes(&[u8]),
        serialize_unit_struct(&'static str),
    );

    fn serialize_f32(self, value: f32) -> Result<(), Unfit> {
        Self::float(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Unfit> {
        Self::float(value)
    }

    fn serialize_none(self) -> Result<(), Unfit> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unfit> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unfit> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
    ) -> Result<(), Unfit> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        value.serialize(self)
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Self, Unfit> {
        Ok(self)
    }

    fn serialize_tuple(self, _length: usize) -> Result<Self, Unfit> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Self, Unfit> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self, Unfit> {
        Ok(self)
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Self, Unfit> {
        Ok(self)
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Self, Unfit> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self, Unfit> {
        Ok(self)
    }
}

macro_rules! looks_at_each {
    ($($trait:ident::$method:ident),* $(,)?) => {$(
        impl $trait for Look {
            type Ok = ();
            type Error = Unfit;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
                value.serialize(Self)
            }

            fn end(self) -> Result<(), Unfit> {
                Ok(())
            }
        }
    )*};
    (named $($trait:ident),* $(,)?) => {$(
        impl $trait for Look {
            type Ok = ();
            type Error = Unfit;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                _key: &'static str,
                value: &T,
            ) -> Result<(), Unfit> {
                value.serialize(Self)
            }

            fn end(self) -> Result<(), Unfit> {
                Ok(())
            }
        }
    )*};
}

looks_at_each!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
);
looks_at_each!(named SerializeStruct, SerializeStructVariant);

impl SerializeMap for Look {
    type Ok = ();
    type Error = Unfit;

    // As a key, serde refuses such a float itself.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _key: &T) -> Result<(), Unfit> {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
        value.serialize(Self)
    }

    fn end(self) -> Result<(), Unfit> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Nothing,
        One(f64),
        Two(f32, f64),
        Named { side: Option<f64> },
    }

    #[derive(Serialize)]
    struct Wrapped(f64);

    #[derive(Serialize)]
    struct All {
        list: Vec<f64>,
        map: BTreeMap<&'static str, Wrapped>,
        pair: (f64, Option<f64>),
        shape: Shape,
    }

    fn all(at: usize, value: f64) -> All {
        let or = |place, other| if place == at { value } else { other };
        All {
            list: vec![0.5, or(0, 1.5)],
            map: [("a", Wrapped(or(1, -1.0)))].into(),
            pair: (or(2, 0.0), (at != 9).then_some(or(3, f64::MAX))),
            shape: match at {
                4 => Shape::One(value),
                5 => Shape::Two(1.0, value),
                6 => Shape::Named { side: Some(value) },
                7 => Shape::Named { side: None },
                _ => Shape::Nothing,
            },
        }
    }

    #[test]
    fn a_float_that_is_no_number_is_refused_wherever_it_stands() {
        for at in 0..=6 {
            for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let error = write(&all(at, value)).unwrap_err();
                assert!(error.to_string().contains("JSON"), "{at} {value}: {error}");
            }
        }
        assert!(write(&f32::NAN).is_err());
    }

    #[test]
    fn all_else_is_written_as_serde_does() {
        for at in [7, 8, 9] {
            let value = all(at, 1.0);
            assert_eq!(
                write(&value).unwrap(),
                serde_json::to_string(&value).unwrap()
            );
        }
        let raw = serde_json::value::RawValue::from_string("[null]".to_owned()).unwrap();
        assert_eq!(write(&raw).unwrap(), "[null]");
        assert_eq!(write(&("null", None::<f64>)).unwrap(), r#"["null",null]"#);
    }
}
