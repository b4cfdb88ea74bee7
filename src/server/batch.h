/* SPDX-License-Identifier: Apache-2.0 */
/* What both processes know of batches. */
#ifndef SERVER_BATCH_H
#define SERVER_BATCH_H

#define BATCH_JOBS_MAX 1000
#define BATCH_NAME_MAX 256 /* bytes of a client's own name of a job */

#endif
