/* SPDX-License-Identifier: MIT */
/* UUIDs as the server sends them: 16 bytes, big-endian. */
#ifndef QRET_LIB_UUID_H
#define QRET_LIB_UUID_H

#include <stdint.h>

#define UUID_BYTES      16
#define UUID_TEXT_BYTES 37

void uuid_text(const uint8_t *uuid, char *ret_text);

#endif
