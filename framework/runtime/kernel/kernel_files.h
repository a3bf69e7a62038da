// SPDX-License-Identifier: Apache-2.0
// Which files a kernel may name: those of the session that it serves.
#pragma once

namespace treenail {

class FileRoots;  // io/file_place.h
class PrepareContext;

// For a FileScope round whatever names files, when the kernel is prepared or runs. Null: anywhere.
const FileRoots* file_roots_of(const PrepareContext& p);

}  // namespace treenail
