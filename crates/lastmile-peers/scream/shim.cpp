// A plain interface to SCReAM's ScreamV2Tx for one stream. Times are those of its own: seconds in 1/65536. The media queue is
// the host's: this one knows its bytes, its delay and the size of its packets.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
// Window headroom is private, and there is no other way to tell a host the window in bytes.
#define private public
#include "ScreamTx.h"
#undef private
#include "RtpQueue.h"

namespace {
const uint32_t SSRC = 1;

struct HostQueue : RtpQueueIface {
    int bytes = 0;
    int packet = 1200;
    float delay = 0.0f;
    // The host drops frames by its own rule: nothing is cleared here.
    int clear() override { return 0; }
    int sizeOfNextRtp() override { return packet; }
    int seqNrOfNextRtp() override { return -1; }
    int seqNrOfLastRtp() override { return -1; }
    int bytesInQueue() override { return bytes; }
    int sizeOfQueue() override { return (bytes + packet - 1) / packet; }
    float getDelay(float) override { return delay; }
    int getSizeOfLastFrame() override { return 0; }
};

struct Sender {
    HostQueue queue;
    ScreamV2Tx tx;
    float pace = 0.0f;
    int paced = 0;
};
}

extern "C" {
void* scream_new(float min, float start, float max, int packet) {
    Sender* s = new Sender;
    s->queue.packet = packet;
    s->tx.registerNewStream(&s->queue, SSRC, 1.0f, min, start, max);
    return s;
}
void scream_free(void* p) { delete static_cast<Sender*>(p); }
void scream_range(void* p, float min, float max) { static_cast<Sender*>(p)->tx.updateBitrateStream(SSRC, min, max); }
void scream_queue(void* p, int bytes, float delay) {
    Sender* s = static_cast<Sender*>(p);
    s->queue.bytes = bytes;
    s->queue.delay = delay;
}
void scream_frame(void* p, uint32_t now, int bytes) { static_cast<Sender*>(p)->tx.newMediaFrame(now, SSRC, bytes, true); }
void scream_sent(void* p, uint32_t now, int size, uint16_t number) {
    Sender* s = static_cast<Sender*>(p);
    uint32_t ssrc = SSRC;
    s->tx.isOkToTransmit(now, ssrc);
    s->pace = s->tx.addTransmitted(now, SSRC, size, number, false, s->queue.delay);
    s->paced = size;
}
void scream_acked(void* p, uint32_t now, uint32_t arrived, uint16_t number, uint8_t ce, bool last) {
    Sender* s = static_cast<Sender*>(p);
    if (!s->tx.isInitialized) s->tx.initialize(now);
    s->tx.incomingStandardizedFeedback(now, 0, arrived, number, ce, last);
}
// The target in bit/s, below zero once after a loss, the pacing rate in bit/s (0: not known), and the window in bytes.
void scream_read(void* p, uint32_t now, float* target, float* pacing, int* window) {
    Sender* s = static_cast<Sender*>(p);
    uint32_t ssrc = SSRC;
    s->tx.isOkToTransmit(now, ssrc);
    *target = s->tx.getTargetBitrate(now, SSRC);
    *pacing = s->pace > 0.0f ? 8.0f * s->paced / s->pace : 0.0f;
    *window = (int)(s->tx.cwnd * s->tx.windowHeadroom) + s->tx.getMss();
}
}
