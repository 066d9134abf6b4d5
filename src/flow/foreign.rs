//! `Carry` for the arrays of other crates, behind features of their names.

#[cfg(feature = "nalgebra")]
impl<T, R, C, S> super::Carry for nalgebra::Matrix<T, R, C, S>
where
    T: super::Carry,
    R: nalgebra::Dim,
    C: nalgebra::Dim,
    S: nalgebra::RawStorageMut<T, R, C>,
{
    // Storage may be a view.
    const REFERS: bool = true;
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
    S: ndarray::DataMut<Elem = T>,
    D: ndarray::Dimension,
{
    // Storage may be a view.
    const REFERS: bool = true;
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
