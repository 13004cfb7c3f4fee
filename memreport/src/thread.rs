//! Thread-local values of hooks.
//!
//! In a preloaded library (`--cfg memreport_preload`, set by the build of `about-memory`) they are
//! of the initial-exec model, which stable Rust cannot request. The usual model of libraries calls
//! `__tls_get_addr`, which allocates after libraries with thread-locals were loaded, with the
//! thread's table half replaced. A `malloc` must not call it.

/// Declares a thread-local value that hooks may use: `std::thread_local!`, or initial-exec.
///
/// The type is a `Cell` whose initial value is all zeros. The last argument is a symbol of its own.
#[doc(hidden)]
#[macro_export]
#[cfg(not(memreport_preload))]
macro_rules! __hook_local {
    ($(#[$doc:meta])* static $name:ident: $type:ty = $initial:expr, $symbol:literal) => {
        ::std::thread_local! {
            $(#[$doc])*
            static $name: $type = const { $initial };
        }
    };
}

/// Declares an initial-exec thread-local value that hooks may use.
#[doc(hidden)]
#[macro_export]
#[cfg(memreport_preload)]
macro_rules! __hook_local {
    ($(#[$doc:meta])* static $name:ident: $type:ty = $initial:expr, $symbol:literal) => {
        ::core::arch::global_asm!(
            ".pushsection .tbss,\"awT\",@nobits",
            ".p2align 4",
            concat!(".globl ", $symbol),
            concat!(".hidden ", $symbol),
            concat!(".type ", $symbol, ",@object"),
            concat!($symbol, ":"),
            ".zero {size}",
            concat!(".size ", $symbol, ", {size}"),
            ".popsection",
            size = const ::core::mem::size_of::<$type>(),
        );

        $(#[$doc])*
        #[allow(non_upper_case_globals, reason = "named as a static")]
        const $name: $crate::__private::HookLocal<$type> = {
            #[inline(always)]
            #[allow(unsafe_code, reason = "reads the thread pointer")]
            fn address() -> *const $type {
                let address: *const $type;
                // SAFETY: the instructions write one register, and the flags.
                #[cfg(target_arch = "x86_64")]
                unsafe {
                    ::core::arch::asm!(
                        "mov {address}, qword ptr fs:[0]",
                        concat!("add {address}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        address = out(reg) address,
                        options(pure, nomem, nostack),
                    );
                }
                // SAFETY: as above.
                #[cfg(target_arch = "aarch64")]
                unsafe {
                    ::core::arch::asm!(
                        concat!("adrp {address}, :gottprel:", $symbol),
                        concat!("ldr {address}, [{address}, :gottprel_lo12:", $symbol, "]"),
                        "mrs {thread}, tpidr_el0",
                        "add {address}, {address}, {thread}",
                        address = out(reg) address,
                        thread = out(reg) _,
                        options(pure, nomem, nostack),
                    );
                }
                address
            }

            const _: () = assert!(::core::mem::align_of::<$type>() <= 16);

            // SAFETY: the address is of memory of this size and alignment, which the C library
            // fills with zeros when a thread begins: the initial value.
            #[allow(unsafe_code, reason = "vouches for the value")]
            unsafe {
                $crate::__private::HookLocal::new(address)
            }
        };
    };
}

/// An initial-exec thread-local value.
#[cfg(memreport_preload)]
#[derive(Debug)]
pub struct HookLocal<T: 'static>(fn() -> *const T);

#[cfg(memreport_preload)]
impl<T> HookLocal<T> {
    /// Declares a value by the function that returns its address in the current thread.
    ///
    /// # Safety
    ///
    /// The address is valid, for this thread alone, as long as the thread lives.
    #[must_use]
    #[allow(unsafe_code, reason = "has a contract")]
    pub const unsafe fn new(address: fn() -> *const T) -> Self {
        HookLocal(address)
    }

    /// Calls `with` on the value of this thread, as `std::thread::LocalKey::try_with` does.
    ///
    /// # Errors
    ///
    /// None.
    #[inline(always)]
    #[allow(unsafe_code, reason = "refers to the value")]
    pub fn try_with<R>(&self, with: impl FnOnce(&T) -> R) -> Result<R, core::convert::Infallible> {
        // SAFETY: valid by the contract of `new`; the reference does not leave the thread.
        Ok(with(unsafe { &*(self.0)() }))
    }
}
