/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Certificates and how TLS is negotiated, which may be replaced while connections use the old ones. */
#ifndef IBSCOPE_WEB_TLS_H
#define IBSCOPE_WEB_TLS_H

#include "web_config.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

struct web_tls;

/* @c has a certificate. Return: 0, or -EINVAL with @err. */
int web_tls_open(const struct web_config *c, struct web_tls **out, struct err *err);

/* Freed with its last user. @t may be NULL. */
struct web_tls *web_tls_get(struct web_tls *t);
void web_tls_put(struct web_tls *t);

/* Before the handshake of a session that uses @t, which gnutls_db_get_ptr() of it must return. */
void web_tls_begin(struct web_tls *t, gnutls_session_t session);

/* Of type gnutls_certificate_retrieve_function3. */
int web_tls_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
			gnutls_pcert_st **certs, unsigned int *n_certs, gnutls_ocsp_data_st **ocsp,
			unsigned int *n_ocsp, gnutls_privkey_t *key, unsigned int *flags);

#endif
