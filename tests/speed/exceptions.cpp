// exceptions.cpp: exceptions and threads of C++, a million times within the probe's samples.
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

static long thrown(long rounds)
{
    long caught = 0;
    for (long i = 0; i < rounds; i++) {
        try {
            std::vector<long> values(8, i);
            if (values[static_cast<size_t>(i % 8)] % 3)
                throw std::runtime_error("one of three is not");
        } catch (const std::exception &) {
            caught++;
        }
    }
    return caught;
}

int main()
{
    std::vector<std::thread> threads;
    std::vector<long> caught(4);
    for (size_t i = 0; i < caught.size(); i++)
        threads.emplace_back([&caught, i] { caught[i] = thrown(150000); });
    for (auto &thread : threads)
        thread.join();
    for (long one : caught)
        std::printf("%ld\n", one);
    std::thread([] { throw 1; }).join();
}
