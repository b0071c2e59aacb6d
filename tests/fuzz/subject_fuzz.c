/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the name in a certificate: what is one is put as it was got.
 */
#include "base/assert.h"
#include "link/subject.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char uri[SUBJECT_URI_SIZE];
    struct subject s;

    if (subject_parse(bytes_of(data, size), &s)) {
        subject_format(&s, uri);
        ASSERT(strlen(uri) == size && memcmp(uri, data, size) == 0);
    }
    return 0;
}
