/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the ringhold:// name out of a peer's certificate, by OpenSSL.
 */
#include "link/tls_inside.h"

#include <openssl/x509v3.h>

bool tls_subject_of(const struct x509_st *certificate, struct subject *out)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int count = 0;

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

        if (name->type == GEN_URI) {
            const ASN1_IA5STRING *uri = name->d.uniformResourceIdentifier;
            const int size = ASN1_STRING_length(uri);

            count += subject_parse(
                bytes_of(ASN1_STRING_get0_data(uri), size < 0 ? 0 : (size_t)size), out);
        }
    }
    GENERAL_NAMES_free(names);
    return count == 1;
}
