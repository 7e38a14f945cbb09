/* getpid by the calls of i386, from a program of amd64: number 20 there is
 * writev here. */
#include <stdio.h>

int main(void) {
	long pid;
	__asm__ volatile("int $0x80" : "=a"(pid) : "a"(20L));
	printf("pid %d\n", pid > 0);
	return 0;
}
