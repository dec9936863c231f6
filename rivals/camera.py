"""The camera of all contenders: a moving texture with noise, 640x480 at 30 frames/s, 60 pictures over and over, as y4m."""

import random
import sys

WIDTH, HEIGHT, PICTURES = 640, 480, 60


def write(path):
    board = [bytes(60 * ((x // 16 + y // 16) % 2) * 2 + 68 for x in range(WIDTH + 4 * PICTURES)) for y in range(32)]
    dice = random.Random(3)
    noise = [dice.randbytes(WIDTH) for _ in range(97)]
    with open(path, "wb") as out:
        out.write(b"YUV4MPEG2 W%d H%d F30:1 Ip A1:1 C420jpeg\n" % (WIDTH, HEIGHT))
        for n in range(PICTURES):
            out.write(b"FRAME\n")
            for y in range(HEIGHT):
                row, grain = board[y % 32][4 * n : 4 * n + WIDTH], noise[(7 * y + 13 * n) % 97]
                out.write(bytes((3 * a + b) >> 2 for a, b in zip(row, grain)))
            out.write(bytes([128]) * (WIDTH * HEIGHT // 2))


if __name__ == "__main__":
    write(sys.argv[1])
