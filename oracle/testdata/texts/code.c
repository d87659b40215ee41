#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING_MIN 16u
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

struct ring {
	uint8_t *data;
	size_t cap;   /* always a power of two */
	size_t head;  /* next byte to read */
	size_t tail;  /* next byte to write */
};

static size_t round_up(size_t n)
{
	size_t cap = RING_MIN;

	while (cap < n)
		cap <<= 1;
	return cap;
}

int ring_init(struct ring *r, size_t want)
{
	if (r == NULL || want > SIZE_MAX / 2)
		return -EINVAL;
	r->cap = round_up(want);
	r->data = malloc(r->cap);
	if (r->data == NULL)
		return -ENOMEM;
	r->head = r->tail = 0;
	return 0;
}

size_t ring_used(const struct ring *r)
{
	return r->tail - r->head;
}

size_t ring_write(struct ring *r, const void *src, size_t len)
{
	size_t room = r->cap - ring_used(r);
	size_t at, first;

	if (len > room)
		len = room;
	at = r->tail & (r->cap - 1);
	first = r->cap - at < len ? r->cap - at : len;
	memcpy(r->data + at, src, first);
	memcpy(r->data, (const uint8_t *)src + first, len - first);
	r->tail += len;
	return len;
}

size_t ring_read(struct ring *r, void *dst, size_t len)
{
	size_t used = ring_used(r);
	size_t at, first;

	if (len > used)
		len = used;
	at = r->head & (r->cap - 1);
	first = r->cap - at < len ? r->cap - at : len;
	memcpy(dst, r->data + at, first);
	memcpy((uint8_t *)dst + first, r->data, len - first);
	r->head += len;
	return len;
}

void ring_free(struct ring *r)
{
	free(r->data);
	memset(r, 0, sizeof *r);
}

int main(int argc, char **argv)
{
	struct ring r;
	char out[64];
	int err = ring_init(&r, 32);

	if (err) {
		fprintf(stderr, "%s: %s\n", argv[0], strerror(-err));
		return EXIT_FAILURE;
	}
	for (int i = 1; i < argc; i++)
		if (ring_write(&r, argv[i], strlen(argv[i])) == 0)
			fprintf(stderr, "full at argument %d\n", i);
	size_t n = ring_read(&r, out, sizeof(out) - 1);
	out[n] = '\0';
	printf("%zu bytes: %s\n", n, out);
	ring_free(&r);
	return EXIT_SUCCESS;
}
