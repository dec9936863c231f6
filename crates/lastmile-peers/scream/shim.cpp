// A plain interface to SCReAM's ScreamV2Tx for one stream. Times are those of its own: seconds in 1/65536. The media queue is
// the host's: this one knows its bytes, the age of its oldest packet and the size of its next one.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
// The window, bytes in flight, the interval of pacing and a stream's losses are private, and a host needs them.
#define private public
#include "ScreamTx.h"
#undef private
#include "RtpQueue.h"

namespace {
const uint32_t SSRC = 1;
// The host drops frames by its own rule, so that this queue is never too old.
const float NEVER = 1e9f;

struct HostQueue : RtpQueueIface {
    int bytes = 0;
    int next = 1200;
    float delay = 0.0f;
    int clear() override { return 0; }
    int sizeOfNextRtp() override { return next; }
    int seqNrOfNextRtp() override { return -1; }
    int seqNrOfLastRtp() override { return -1; }
    int bytesInQueue() override { return bytes; }
    int sizeOfQueue() override { return (bytes + next - 1) / next; }
    float getDelay(float) override { return delay; }
    int getSizeOfLastFrame() override { return 0; }
};

struct Sender {
    HostQueue queue;
    ScreamV2Tx tx;
    // scream_sender.cpp's values: initRate * 100 / 8 is its window of 100 ms.
    Sender(float start, float delay_target)
        : tx(0.7f, 0.7f, delay_target, (int)(start * 0.1f / 8.0f), 1.5f, 1.5f, 2.0f, 0.05f, false, 5.0f, false, false) {}
};
}

extern "C" {
struct scream_state {
    float target;
    // Seconds between two packets; zero before the first feedback.
    float pace;
    int32_t window;
    int32_t in_flight;
    uint32_t lost;
};

void* scream_new(float min, float start, float max, int packet, float delay_target) {
    Sender* s = new Sender(start, delay_target);
    s->queue.next = packet;
    s->tx.setCwndMinLow(2 * packet);
    s->tx.registerNewStream(&s->queue, SSRC, 1.0f, min, start, max, NEVER, false, 0.0f);
    // A new frame takes it, which is before the first feedback the least rate: its sender starts at its least.
    s->tx.streams[0]->rateShare = start;
    return s;
}
void scream_free(void* p) { delete static_cast<Sender*>(p); }
void scream_range(void* p, float min, float max) { static_cast<Sender*>(p)->tx.updateBitrateStream(SSRC, min, max); }
void scream_l4s(void* p, bool is) { static_cast<Sender*>(p)->tx.isL4s = is; }
void scream_queue(void* p, int bytes, int next, float delay) {
    Sender* s = static_cast<Sender*>(p);
    s->queue.bytes = bytes;
    s->queue.next = next;
    s->queue.delay = delay;
}
void scream_frame(void* p, uint32_t now, int bytes) { static_cast<Sender*>(p)->tx.newMediaFrame(now, SSRC, bytes, true); }
void scream_sent(void* p, uint32_t now, int size, uint16_t number, bool mark, float waited) {
    Sender* s = static_cast<Sender*>(p);
    uint32_t ssrc = SSRC;
    s->tx.isOkToTransmit(now, ssrc);
    // Without RTP's time stamps, which are zero by default: by those of frames it finds no loss before 512 later packets.
    s->tx.addTransmitted(now, SSRC, size, number, mark, waited);
}
void scream_acked(void* p, uint32_t now, uint32_t arrived, uint16_t number, uint8_t ecn, bool last) {
    Sender* s = static_cast<Sender*>(p);
    if (!s->tx.isInitialized) s->tx.initialize(now);
    s->tx.incomingStandardizedFeedback(now, 0, arrived, number, ecn, last);
}
void scream_read(void* p, uint32_t now, scream_state* state) {
    Sender* s = static_cast<Sender*>(p);
    uint32_t ssrc = SSRC;
    // It opens the window after half a second without a packet, and keeps its rates.
    s->tx.isOkToTransmit(now, ssrc);
    float target = s->tx.getTargetBitrate(now, SSRC);
    // Below zero once after a loss: it asks for a picture that needs none before it, which here the receiver does.
    if (target < 0.0f) target = s->tx.getTargetBitrate(now, SSRC);
    state->target = target;
    state->pace = s->tx.paceInterval;
    state->window = (int)(s->tx.cwnd * s->tx.windowHeadroom) + s->tx.getMss();
    state->in_flight = s->tx.bytesInFlight;
    state->lost = (uint32_t)s->tx.streams[0]->packetLost;
}
}
