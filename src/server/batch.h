/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of batches that front and runner share. */
#ifndef SERVER_BATCH_H
#define SERVER_BATCH_H

#define BATCH_JOBS_MAX 1000
#define BATCH_NAME_MAX 256 /* bytes of a job's name, which the client chooses */

#endif
