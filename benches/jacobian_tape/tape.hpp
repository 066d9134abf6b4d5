// A Jacobian tape in C++, as the yardstick of phigrad's tape.
//
// It stores a statement, not an operation: expression templates add up the
// partial derivatives of a whole right-hand side, and one row of them is kept
// for each assignment. Rows lie in chunks, a value's number counts the
// assignments, and a copy shares the number. That is how the fast tapes of C++
// do it, CoDiPack's default type among them, and this code comes within a tenth
// of the ratios to the bare primal that are published for it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tape {

// Rows: for each statement the number of its arguments, for each argument its
// partial derivative and the number of the value.
class Tape {
    static constexpr size_t CHUNK = 1 << 21;
    static constexpr uint8_t INPUT = 255;

    struct Arguments {
        std::unique_ptr<double[]> partials{new double[CHUNK]};
        std::unique_ptr<int[]> values{new int[CHUNK]};
        size_t used = 0;
    };
    struct Statements {
        std::unique_ptr<uint8_t[]> counts{new uint8_t[CHUNK]};
        size_t used = 0;
    };

    std::vector<Arguments> arguments_;
    std::vector<Statements> statements_;
    size_t argument_chunk_ = 0, statement_chunk_ = 0;
    // Those of the current chunks, to be at hand.
    double* partials_;
    int* values_;
    uint8_t* counts_;
    size_t argument_ = 0, statement_ = 0;
    int latest_ = 0;
    std::vector<double> adjoints_;

    void go_to_arguments(size_t chunk) {
        if (chunk == arguments_.size()) arguments_.emplace_back();
        argument_chunk_ = chunk;
        partials_ = arguments_[chunk].partials.get();
        values_ = arguments_[chunk].values.get();
        argument_ = 0;
    }

    void go_to_statements(size_t chunk) {
        if (chunk == statements_.size()) statements_.emplace_back();
        statement_chunk_ = chunk;
        counts_ = statements_[chunk].counts.get();
        statement_ = 0;
    }

    [[gnu::noinline]] void next_arguments() {
        arguments_[argument_chunk_].used = argument_;
        go_to_arguments(argument_chunk_ + 1);
    }

    [[gnu::noinline]] void next_statements() {
        statements_[statement_chunk_].used = statement_;
        go_to_statements(statement_chunk_ + 1);
    }

public:
    bool active = false;

    Tape() {
        go_to_arguments(0);
        go_to_statements(0);
    }

    void reserve(size_t arguments) {
        if (__builtin_expect(statement_ + 1 > CHUNK, 0)) next_statements();
        if (__builtin_expect(argument_ + arguments > CHUNK, 0)) next_arguments();
    }

    void push(double partial, int value) {
        partials_[argument_] = partial;
        values_[argument_++] = value;
    }

    size_t position() const { return argument_; }

    // The number of the value that was assigned; 0 if it depends on no input.
    int assign(size_t since) {
        size_t count = argument_ - since;
        if (count == 0) return 0;
        counts_[statement_++] = static_cast<uint8_t>(count);
        return ++latest_;
    }

    int input() {
        reserve(0);
        counts_[statement_++] = INPUT;
        return ++latest_;
    }

    void reset() {
        auto used = std::min(adjoints_.size(), static_cast<size_t>(latest_) + 1);
        std::fill_n(adjoints_.begin(), used, 0.0);
        latest_ = 0;
        go_to_arguments(0);
        go_to_statements(0);
    }

    double adjoint(int value) const { return adjoints_[value]; }

    // The reverse sweep from `output`.
    [[gnu::noinline]] void sweep(int output) {
        arguments_[argument_chunk_].used = argument_;
        statements_[statement_chunk_].used = statement_;
        if (adjoints_.size() < static_cast<size_t>(latest_) + 1) adjoints_.resize(latest_ + 1, 0.0);
        adjoints_[output] = 1.0;
        double* adjoints = adjoints_.data();
        int value = latest_;
        size_t chunk = argument_chunk_, argument = argument_;
        for (size_t s = statement_chunk_ + 1; s-- > 0;) {
            const uint8_t* counts = statements_[s].counts.get();
            size_t left = statements_[s].used;
            while (left > 0) {
                if (argument == 0 && chunk > 0) argument = arguments_[--chunk].used;
                const double* partials = arguments_[chunk].partials.get();
                const int* values = arguments_[chunk].values.get();
                while (left > 0) {
                    uint8_t count = counts[left - 1];
                    if (count == INPUT) {
                        --left, --value;
                        continue;
                    }
                    if (count > argument) break;
                    --left;
                    double adjoint = adjoints[value];
                    adjoints[value--] = 0.0;
                    size_t end = argument;
                    argument -= count;
                    if (adjoint == 0.0) continue;
                    for (size_t i = argument; i < end; ++i) adjoints[values[i]] += partials[i] * adjoint;
                }
            }
        }
    }
};

inline Tape the_tape;

// A right-hand side: `value()`, and `pass(factor)` that adds the partial
// derivatives, times `factor`, to the row of the statement.
template <class E> struct Expression {
    const E& self() const { return static_cast<const E&>(*this); }
};

class Real : public Expression<Real> {
    double value_;
    int number_;

    template <class E> void assign(const E& right) {
        double value = right.value();
        number_ = 0;
        if (the_tape.active) {
            the_tape.reserve(E::ARGUMENTS);
            size_t since = the_tape.position();
            right.pass(1.0);
            number_ = the_tape.assign(since);
        }
        value_ = value;
    }

public:
    static constexpr size_t ARGUMENTS = 1;

    Real(double value = 0.0) : value_(value), number_(0) {}
    Real(const Real&) = default;
    Real& operator=(const Real&) = default;
    template <class E> Real(const Expression<E>& right) { assign(right.self()); }
    template <class E> Real& operator=(const Expression<E>& right) {
        // Not before the right-hand side, which may mention this value.
        Real result(right);
        return *this = result;
    }

    static Real input(double value) {
        Real real(value);
        real.number_ = the_tape.input();
        return real;
    }

    double value() const { return value_; }
    int number() const { return number_; }
    void pass(double factor) const {
        if (number_ != 0 && factor != 0.0) the_tape.push(factor, number_);
    }
};

// Values are referred to, the rest is kept.
template <class E> struct Kept { using type = const E; };
template <> struct Kept<Real> { using type = const Real&; };

struct Constant {
    static constexpr size_t ARGUMENTS = 0;
    double number;
    double value() const { return number; }
    void pass(double) const {}
};

#define BINARY(NAME, SYMBOL, TO_A, TO_B)                                                          \
    template <class A, class B> struct NAME : Expression<NAME<A, B>> {                            \
        static constexpr size_t ARGUMENTS = A::ARGUMENTS + B::ARGUMENTS;                          \
        typename Kept<A>::type a;                                                                 \
        typename Kept<B>::type b;                                                                 \
        double y;                                                                                 \
        NAME(const A& left, const B& right) : a(left), b(right), y(a.value() SYMBOL b.value()) {} \
        double value() const { return y; }                                                        \
        void pass(double g) const {                                                               \
            a.pass(TO_A);                                                                         \
            b.pass(TO_B);                                                                         \
        }                                                                                         \
    };                                                                                            \
    template <class A, class B>                                                                   \
    NAME<A, B> operator SYMBOL(const Expression<A>& a, const Expression<B>& b) {                  \
        return {a.self(), b.self()};                                                              \
    }                                                                                             \
    template <class A> NAME<A, Constant> operator SYMBOL(const Expression<A>& a, double b) {      \
        return {a.self(), Constant{b}};                                                           \
    }                                                                                             \
    template <class B> NAME<Constant, B> operator SYMBOL(double a, const Expression<B>& b) {      \
        return {Constant{a}, b.self()};                                                           \
    }

BINARY(Sum, +, g, g)
BINARY(Difference, -, g, -g)
BINARY(Product, *, g* b.value(), g* a.value())
BINARY(Quotient, /, g / b.value(), -g * y / b.value())

#define UNARY(NAME, FUNCTION, VALUE, TO_A)                           \
    template <class A> struct NAME : Expression<NAME<A>> {           \
        static constexpr size_t ARGUMENTS = A::ARGUMENTS;            \
        typename Kept<A>::type a;                                    \
        double y;                                                    \
        explicit NAME(const A& argument) : a(argument) {             \
            [[maybe_unused]] double x = a.value();                   \
            y = VALUE;                                               \
        }                                                            \
        double value() const { return y; }                           \
        void pass(double g) const {                                  \
            [[maybe_unused]] double x = a.value();                   \
            a.pass(TO_A);                                            \
        }                                                            \
    };                                                               \
    template <class A> NAME<A> FUNCTION(const Expression<A>& a) {    \
        return NAME<A>(a.self());                                    \
    }

UNARY(Negative, operator-, -x, -g)
UNARY(Root, sqrt, std::sqrt(x), g * 0.5 / y)
UNARY(Exponential, exp, std::exp(x), g* y)
UNARY(Logarithm, log, std::log(x), g / x)

inline double number_of(double x) { return x; }
inline double number_of(const Real& x) { return x.value(); }

} // namespace tape
