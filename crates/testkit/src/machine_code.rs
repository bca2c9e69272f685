//! Programs of a few instructions, for effects that no script can cause: files to be put into sandboxes and run there.

/// Touches 16 MiB of memory, starts a thread which does nothing for ever, and ends its first one, which is all that most
/// of `/proc` tells of.
pub fn without_its_first_thread() -> Vec<u8> {
    file(&[
        0xb9, 0x00, 0x10, 0x00, 0x00, // mov ecx, 4096
        0x48, 0x8d, 0x3d, 0x3b, 0x00, 0x00, 0x00, // lea rdi, [rip + end]
        0xc6, 0x07, 0x01, // 1: mov byte ptr [rdi], 1
        0x48, 0x81, 0xc7, 0x00, 0x10, 0x00, 0x00, // add rdi, 4096
        0xff, 0xc9, // dec ecx
        0x75, 0xf2, // jnz 1b
        0xb8, 0x38, 0x00, 0x00, 0x00, // mov eax, SYS_clone
        0xbf, 0x00, 0x0f, 0x05, 0x00, // mov edi, CLONE_THREAD and what goes with it
        0x48, 0x89, 0xe6, // mov rsi, rsp
        0x31, 0xd2, 0x45, 0x31, 0xd2, 0x45, 0x31, 0xc0, // xor edx, edx; r10d; r8d
        0x0f, 0x05, // syscall
        0x85, 0xc0, 0x74, 0x09, // test eax, eax; jz 2f
        0xb8, 0x3c, 0x00, 0x00, 0x00, 0x31, 0xff, 0x0f, 0x05, // exit(0), this thread alone
        0xb8, 0x22, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xeb, 0xf7, // 2: pause(); jmp 2b
    ])
}

/// Keeps that many descendants at any moment, each of which forks and ends, 200 000 times: none lives longer than it
/// takes to look for it. A fork that fails is retried, so that a limit of processes ends nothing.
pub fn forking_away(descendants: u8) -> Vec<u8> {
    let mut code = [
        0xbb, 0x40, 0x0d, 0x03, 0x00, // mov ebx, 200000
        0x41, 0xbc, 0x00, 0x00, 0x00, 0x00, // mov r12d, descendants
        0xb8, 0x39, 0x00, 0x00, 0x00, 0x0f, 0x05, // 1: fork()
        0x85, 0xc0, 0x74, 0x0e, // test eax, eax; jz 3f
        0x41, 0xff, 0xcc, 0x75, 0xf0, // dec r12d; jnz 1b
        0xb8, 0x22, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xeb, 0xf7, // 2: pause(); jmp 2b
        0xff, 0xcb, 0x74, 0x0d, // 3: dec ebx; jz 5f
        0xb8, 0x39, 0x00, 0x00, 0x00, 0x0f, 0x05, // 4: fork()
        0x85, 0xc0, 0x78, 0xf5, // test eax, eax; js 4b
        0x74, 0xef, // jz 3b
        0xb8, 0x3c, 0x00, 0x00, 0x00, 0x31, 0xff, 0x0f, 0x05, // 5: exit(0)
    ];
    code[7] = descendants;
    file(&code)
}

/// Forks without end, and so does each of its descendants.
pub fn fork_bomb() -> Vec<u8> {
    file(&[
        0xb8, 0x39, 0x00, 0x00, 0x00, 0x0f, 0x05, // 1: fork()
        0xeb, 0xf7, // jmp 1b
    ])
}

/// The file of a program: a single segment that is read, written and run, with 17 MiB of memory behind it.
fn file(code: &[u8]) -> Vec<u8> {
    const HEADERS: u64 = 64 + 56;
    const BASE: u64 = 0x40_0000;
    let size = HEADERS + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    // Where it begins, and where its only segment is described.
    file.extend([BASE + HEADERS, 64, 0].map(u64::to_le_bytes).concat());
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    // To be loaded; read, written and run.
    file.extend([1_u32, 7].map(u32::to_le_bytes).concat());
    file.extend([0, BASE, BASE, size, size + (17 << 20), 4096].map(u64::to_le_bytes).concat());
    file.extend(code);
    file
}
