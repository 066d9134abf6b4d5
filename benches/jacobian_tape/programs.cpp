// Four of the benchmark programs on the tape of tape.hpp: nanoseconds for the
// bare primal and for a gradient, and their ratio. The programs are those of
// `phigrad-bench run`, whose column tape/primal is to be held against them.
//
//     g++ -std=c++17 -O3 -march=native -o jacobian_tape programs.cpp
//     ./jacobian_tape

#include "tape.hpp"

#include <array>
#include <chrono>
#include <cstdio>

using tape::number_of;
using tape::Real;

namespace {

const double GOLDEN = 0.6180339887498949, SILVER = 0.41421356237309515;

double weyl(double k, double c) {
    double t = (k + 1.0) * c;
    return t - std::floor(t);
}

struct BgdHyperOpt {
    std::vector<double> x, y;

    explicit BgdHyperOpt(int n) {
        for (int i = 0; i < n; ++i) {
            x.push_back(2.0 * weyl(i, GOLDEN) - 1.0);
            y.push_back(0.7 * x[i] + 0.1 * (2.0 * weyl(i, SILVER) - 1.0));
        }
    }

    template <class T> T operator()(const std::vector<T>& in) const {
        const T& rate = in[0];
        size_t n = x.size();
        T w = 0.0;
        for (int k = 0; k < 100; ++k) {
            T d = 0.0;
            for (size_t i = 0; i < n; ++i) d = d + (w * x[i] - y[i]) * x[i];
            d = d * (2.0 / n);
            if (std::fabs(number_of(d)) < 1e-4) break;
            w = w - rate * d;
        }
        T error = 0.0;
        for (size_t i = 0; i < n; ++i) {
            T e = y[i] - w * x[i];
            error = error + e * e;
        }
        return error / n;
    }
};

struct Brachistochrone {
    template <class T> T operator()(const std::vector<T>& in) const {
        size_t n = in.size() + 1;
        double dx = 4.0 / n;
        std::vector<T> y{T(1.0)};
        y.insert(y.end(), in.begin(), in.end());
        y.push_back(T(0.0));
        T total = 0.0;
        for (size_t i = 1; i <= n; ++i) {
            T v0 = sqrt(19.6 * (1.0 - y[i - 1]));
            T v1 = sqrt(19.6 * (1.0 - y[i]));
            T dy = y[i] - y[i - 1];
            T length = sqrt(dx * dx + dy * dy);
            total = total + length / ((v0 + v1) / 2.0);
        }
        return total;
    }
};

struct Hmc {
    std::vector<std::vector<double>> x;
    std::vector<double> y;

    Hmc(int n, int d) {
        for (int i = 0; i < n; ++i) {
            std::vector<double> row;
            double t = 0.0;
            for (int j = 0; j < d; ++j) {
                row.push_back(4.0 * weyl(i * d + j, GOLDEN) - 2.0);
                t += (1.0 - 0.5 * j) * row[j];
            }
            x.push_back(row);
            y.push_back(weyl(i, SILVER) < 1.0 / (1.0 + std::exp(-t)) ? 1.0 : 0.0);
        }
    }

    template <class T> T operator()(const std::vector<T>& beta) const {
        T total = 0.0;
        for (size_t i = 0; i < x.size(); ++i) {
            T t = 0.0;
            for (size_t j = 0; j < beta.size(); ++j) t = t + x[i][j] * beta[j];
            T m = -t, lse = m;
            if (!(number_of(m) > 40.0)) lse = log(1.0 + exp(m));
            total = total + t * (y[i] - 1.0) - lse;
        }
        T prior = 0.0;
        for (const T& b : beta) prior = prior + b * b;
        return total - prior / 2000.0;
    }
};

struct HookeanSpring {
    std::vector<std::array<int, 2>> ends;
    std::vector<double> rest;

    explicit HookeanSpring(int v) {
        for (int i = 0; i < v; ++i) {
            ends.push_back({i, (i + 1) % v});
            rest.push_back(1.0);
            ends.push_back({i, (i + 2) % v});
            rest.push_back(1.5);
        }
    }

    static std::vector<double> start(int v) {
        std::vector<double> at;
        for (int i = 0; i < v; ++i) {
            double t = 2.0 * M_PI * i / v;
            double radius = 0.5 * v / M_PI + 0.3 * (2.0 * weyl(i, GOLDEN) - 1.0);
            at.push_back(radius * std::cos(t));
            at.push_back(radius * std::sin(t));
        }
        return at;
    }

    template <class T> T operator()(const std::vector<T>& at) const {
        T total = 0.0;
        for (size_t i = 0; i < ends.size(); ++i) {
            auto [a, b] = ends[i];
            T dx = at[2 * a] - at[2 * b];
            T dy = at[2 * a + 1] - at[2 * b + 1];
            T stretch = sqrt(dx * dx + dy * dy + 1e-6) - rest[i];
            total = total + 0.5 * stretch * stretch;
        }
        return total;
    }
};

template <class F> double nanoseconds(F f) {
    auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

template <class P>
[[gnu::noinline]] void gradient(const P& program, const std::vector<double>& at, std::vector<double>& out) {
    tape::Tape& tape = tape::the_tape;
    tape.reset();
    tape.active = true;
    std::vector<Real> x;
    for (double number : at) x.push_back(Real::input(number));
    Real y = program(x);
    tape.active = false;
    tape.sweep(y.number());
    for (size_t i = 0; i < x.size(); ++i) out[i] = tape.adjoint(x[i].number());
}

template <class P> void measure(const char* name, int config, const P& program, std::vector<double> at) {
    volatile double sink = 0.0;
    std::vector<double> out(at.size()), primal, taped;
    int calls = 0;
    auto next = [&] {
        at[0] += ++calls % 2 ? 1e-9 : -1e-9;
        return at;
    };
    auto bare = [&] { sink = sink + program(next()); };
    auto on_tape = [&] {
        gradient(program, next(), out);
        sink = sink + out[0];
    };
    on_tape();
    int repeat = std::max(1.0, 2e5 / nanoseconds(bare));
    int fewer = std::max(1, repeat / 8);
    for (int round = 0; round < 41; ++round) {
        primal.push_back(nanoseconds([&] { for (int i = 0; i < repeat; ++i) bare(); }) / repeat);
        taped.push_back(nanoseconds([&] { for (int i = 0; i < fewer; ++i) on_tape(); }) / fewer);
    }
    std::sort(primal.begin(), primal.end());
    std::sort(taped.begin(), taped.end());
    std::printf("%-16s %d  primal %9.0f ns  tape %9.0f ns  tape/primal %5.2f  d/dx0 %.12g\n", name, config,
                primal[20], taped[20], taped[20] / primal[20], out[0]);
}

} // namespace

int main() {
    int config = 0;
    for (int n : {200, 1000, 2000}) measure("BGDHyperOpt", ++config, BgdHyperOpt(n), {0.05});
    config = 0;
    for (int n : {200, 400, 1000}) {
        std::vector<double> start;
        for (int i = 1; i < n; ++i) start.push_back(1.0 - double(i) / n);
        measure("Brachistochrone", ++config, Brachistochrone(), start);
    }
    config = 0;
    for (auto [n, d] : {std::pair{100, 1}, std::pair{1000, 2}, std::pair{800, 3}}) {
        std::vector<double> start;
        for (int j = 0; j < d; ++j) start.push_back(0.3 - 0.2 * j);
        measure("HMC", ++config, Hmc(n, d), start);
    }
    config = 0;
    for (int v : {10, 20, 40}) measure("HookeanSpring", ++config, HookeanSpring(v), HookeanSpring::start(v));
}
