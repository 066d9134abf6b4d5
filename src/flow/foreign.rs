//! `Carry` for the arrays of other crates, behind features with their names.

/// The storage of an array.
#[cfg(any(feature = "nalgebra", feature = "ndarray"))]
pub trait Storage {
    /// True if it borrows its elements, so that changes are seen by others.
    const IS_VIEW: bool;
}

#[cfg(any(feature = "nalgebra", feature = "ndarray"))]
macro_rules! storage {
    ($([$($parameters:tt)*] $type:ty, $is_view:literal;)*) => {
        $(
            impl<$($parameters)*> Storage for $type {
                const IS_VIEW: bool = $is_view;
            }
        )*
    };
}

#[cfg(feature = "nalgebra")]
storage! {
    [T, R: nalgebra::Dim, C: nalgebra::Dim] nalgebra::VecStorage<T, R, C>, false;
    [T, const R: usize, const C: usize] nalgebra::ArrayStorage<T, R, C>, false;
    ['a, T, R: nalgebra::Dim, C: nalgebra::Dim, A: nalgebra::Dim, B: nalgebra::Dim]
        nalgebra::ViewStorageMut<'a, T, R, C, A, B>, true;
}

#[cfg(feature = "ndarray")]
storage! {
    [T] ndarray::OwnedRepr<T>, false;
    [T] ndarray::OwnedArcRepr<T>, false;
    ['a, T] ndarray::CowRepr<'a, T>, false;
    ['a, T] ndarray::ViewRepr<&'a mut T>, true;
}

#[cfg(feature = "nalgebra")]
impl<'a, T, R, C, A, B> super::known_aliasing::KnownAliasing
    for nalgebra::Matrix<T, R, C, nalgebra::ViewStorage<'a, T, R, C, A, B>>
where
    T: super::Carry,
    R: nalgebra::Dim,
    C: nalgebra::Dim,
    A: nalgebra::Dim,
    B: nalgebra::Dim,
{
    const REFERS: bool = T::REFERS;
}

#[cfg(feature = "ndarray")]
impl<T, D> super::known_aliasing::KnownAliasing for ndarray::ArrayBase<ndarray::ViewRepr<&T>, D, T>
where
    T: super::Carry,
{
    const REFERS: bool = T::REFERS;
}

#[cfg(feature = "nalgebra")]
impl<T, R, C, S> super::Carry for nalgebra::Matrix<T, R, C, S>
where
    T: super::Carry,
    R: nalgebra::Dim,
    C: nalgebra::Dim,
    S: nalgebra::RawStorageMut<T, R, C> + Storage,
{
    const REFERS: bool = S::IS_VIEW || T::REFERS;
    const COMMON: bool = true;

    fn carry(&mut self, to: &mut super::Carrier) {
        to.state(self.nrows() as u64);
        to.state(self.ncols() as u64);
        self.iter_mut().for_each(|element| element.carry(to));
    }

    fn note(&self, to: &mut super::Carrier) {
        to.state(self.nrows() as u64);
        to.state(self.ncols() as u64);
        self.iter().for_each(|element| element.note(to));
    }
}

#[cfg(feature = "ndarray")]
impl<T, S, D> super::Carry for ndarray::ArrayBase<S, D, T>
where
    T: super::Carry,
    S: ndarray::DataMut<Elem = T> + Storage,
    D: ndarray::Dimension,
{
    const REFERS: bool = S::IS_VIEW || T::REFERS;
    const COMMON: bool = true;

    fn carry(&mut self, to: &mut super::Carrier) {
        self.shape().iter().for_each(|&length| to.state(length as u64));
        self.iter_mut().for_each(|element| element.carry(to));
    }

    fn note(&self, to: &mut super::Carrier) {
        self.shape().iter().for_each(|&length| to.state(length as u64));
        self.iter().for_each(|element| element.note(to));
    }
}
