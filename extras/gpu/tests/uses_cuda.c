/* A program that uses CUDA for so many seconds. */
#include <stdlib.h>
#include <unistd.h>
int cuInit(void);
int main(int count, char **words)
{
    return cuInit() || usleep(1e6 * atof(words[count - 1]));
}
